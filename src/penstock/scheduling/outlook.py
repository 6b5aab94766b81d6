"""What the line of a stage says of its next turn: the figures that a view shows to policies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.measure.profiles import StageProfile
from penstock.scheduling.contexts import Frontier, Message, PriorityContext, ReplyContext
from penstock.scheduling.line import Line
from penstock.scheduling.policies import ContextPolicy


@dataclass(frozen=True)
class Waiting:
    """What waits at a stage: rows, the oldest of which came at `since`, and a flush, if one is due.

    `frontier` is known where Spark reads the rows itself.
    """

    rows: int
    since: float
    flush_since: float | None = None
    frontier: Frontier | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """What turns cost on the slots that the stage has, and how long one is meant to take at most."""

    profile: StageProfile | None
    slots: int
    grain_seconds: float


def figures(line: Line, waiting: Waiting, now: float, costs: Costs) -> dict[str, Any]:
    """What a view of the stage says about its next message and its costs."""
    profile = costs.profile
    fixed, per_row = (profile.fixed_seconds, profile.row_seconds) if profile else (0.0, 0.0)
    error = line.cost_error_seconds
    # A turn is cut to the grain: the rest of the rows is another turn's.
    cost = max(min(fixed + per_row * waiting.rows, max(costs.grain_seconds, fixed)) + error, 0.0)
    context = next_context(line, waiting, cost, now)
    rows_next = line.rows_next
    return {
        "context": context,
        "rows_next": rows_next if rows_next is None or not waiting.rows else max(rows_next, 1),
        "fixed_seconds": max(fixed + error, 0.0),
        "row_seconds": per_row * costs.slots,
        "start_deadline": context.time + context.latency_seconds - cost - line.reply.path_seconds,
    }


def next_context(line: Line, waiting: Waiting, cost_seconds: float, now: float) -> PriorityContext:
    """That of the next message, or of the flush that is due, whichever is sooner."""
    context = line.next_context(cost_seconds, now) if waiting.frontier is None else None
    if context is None:
        message = Message("turn", waiting.rows, waiting.since)
        context = line.context_of(message, cost_seconds, waiting.frontier)
    if waiting.flush_since is None:
        return context
    flush = line.context_of(Message("flush", 0, waiting.flush_since), cost_seconds, None)
    return min(context, flush, key=order)


def order(context: PriorityContext) -> tuple[bool, float]:
    """Which of several contexts is the sooner one."""
    return context.deferred, context.pri_global


def known_below(policy: ContextPolicy, replies: Iterable[ReplyContext]) -> ReplyContext:
    """What a stage knows of those below it, by the last reply of each."""
    known = ReplyContext()
    for reply in replies:
        known = policy.process_reply(known, reply)
    return known
