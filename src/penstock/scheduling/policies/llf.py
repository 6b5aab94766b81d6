"""Least laxity first, and its kin: the deadlines of Cameo."""

from __future__ import annotations

import random
from dataclasses import dataclass

from penstock.scheduling.contexts import Message, PriorityContext, Target, transform
from penstock.scheduling.policies.context_policy import ContextPolicy
from penstock.scheduling.stage_view import StageView


@dataclass(frozen=True, slots=True)
class Llf(ContextPolicy):
    """Runs the stage whose next message must start soonest to be in time.

    Least laxity first (Cameo, NSDI 2021, section 4): the start deadline is t + L - C - C_path, with t the
    arrival of the message or, for a window, the time at which its frontier is complete. Work for a
    window that is not complete waits while anything else can run. `semantics=False` leaves windows out of
    it. `cost_error_seconds` is the sigma of errors put on the costs of turns, to see how much they matter.

    >>> def view(name, time, cost):
    ...     context = PriorityContext("m", 0.0, time + 0.8 - cost, 0.0, time, 0.8)
    ...     return StageView(name, "p", 10, ready_since=time, oldest_arrival=time, context=context)
    >>> long, short = view("long", 10.0, cost=0.55), view("short", 10.0, cost=0.05)
    >>> Llf().priority(long, now=10.1), Llf().priority(short, now=10.1)
    (10.25, 10.75)
    """

    semantics: bool = True
    cost_error_seconds: float = 0.0
    seed: int = 0

    @property
    def by_deadline(self) -> bool:
        return True

    @property
    def waits_for_more(self) -> bool:
        return True

    def at_source(self, message: Message, target: Target) -> PriorityContext:
        return self._convert(message, target)

    def at_operator(self, context: PriorityContext, message: Message, target: Target) -> PriorityContext:
        return self._convert(message, target)

    def _convert(self, message: Message, target: Target) -> PriorityContext:
        """CXTCONVERT: the start deadline, by equation 3 for windows and by equation 2 else."""
        progress, time, deferred, complete = message.time, message.time, False, False
        if message.progress is not None:
            slide = target.slide_seconds if self.semantics else None
            progress = transform(message.progress, slide, target.upstream_slide_seconds)
        frontier = target.frontier if self.semantics else None
        if frontier is not None and frontier.time is not None:
            time, deferred, complete = frontier.time, not frontier.complete, frontier.complete
        deadline = self.deadline(time, target)
        return PriorityContext(
            message.id,
            progress,
            deadline,
            progress,
            time,
            target.latency_seconds,
            deferred,
            complete=complete,
        )

    def deadline(self, time: float, target: Target) -> float:
        return time + target.latency_seconds - target.reply.total_seconds

    def cost_error(self, stage: str, message: str) -> float:
        if not self.cost_error_seconds:
            return 0.0
        return random.Random(f"{self.seed}|{stage}|{message}").gauss(0.0, self.cost_error_seconds)

    def reason(self, stage: StageView) -> str:
        return _reason("least laxity", stage)


@dataclass(frozen=True, slots=True)
class Edf(Llf):
    """Runs the stage whose next message is due first, whatever it costs itself (Cameo, section 4.2.2).

    >>> from penstock.scheduling.contexts import ReplyContext
    >>> target = Target("s", "t", 0.8, reply=ReplyContext(cost_seconds=0.5, path_seconds=0.3))
    >>> Edf().at_source(Message("m", 10, time=10.0), target).pri_global
    10.5
    """

    def deadline(self, time: float, target: Target) -> float:
        return time + target.latency_seconds - target.reply.path_seconds

    def reason(self, stage: StageView) -> str:
        return _reason("earliest deadline", stage)


@dataclass(frozen=True, slots=True)
class Sjf(Llf):
    """Runs the stage whose turn is the shortest. It knows no deadlines; to compare with."""

    @property
    def by_deadline(self) -> bool:
        return False

    def deadline(self, time: float, target: Target) -> float:
        return target.reply.cost_seconds

    def reason(self, stage: StageView) -> str:
        cost = stage.context.pri_global if stage.context else 0.0
        return f"shortest turn, {cost * 1000:.0f} ms"


def _reason(words: str, stage: StageView) -> str:
    if stage.context is None:
        return f"{words}, nothing known of its rows"
    work = stage.context.time + stage.context.latency_seconds - stage.context.pri_global
    early = ", a window that is not complete" if stage.context.deferred else ""
    target = f"{stage.context.latency_seconds:g} s"
    return f"{words}, {work * 1000:.0f} ms of work before a target of {target}{early}"
