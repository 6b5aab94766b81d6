"""The messages that wait at a stage, by their local priority: the lower level of Cameo's structure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from penstock.scheduling.contexts import Frontier, Message, PriorityContext, ReplyContext, Target, transform
from penstock.scheduling.laxity import Start, reserve_seconds
from penstock.scheduling.policies import ContextPolicy
from penstock.scheduling.progress import ProgressMap, Sources


@dataclass(frozen=True, slots=True)
class WindowSpan:
    """The window of a stage: its step, and how long after its end rows may still come."""

    slide_seconds: float
    delay_seconds: float = 0.0
    offset_seconds: float = 0.0


@dataclass(slots=True)
class _Entry:
    message: Message
    upstream: PriorityContext | None
    context: PriorityContext
    place: tuple[float, int]
    rows: int


class Line:
    """Converts the contexts of a stage's messages and knows which of them is next. Not safe for threads."""

    def __init__(
        self,
        policy: ContextPolicy,
        target: Target,
        *,
        window: WindowSpan | None = None,
        sources: Sources | None = None,
        ingestion: bool = False,
    ) -> None:
        self._policy = policy
        self._target = target
        self._window = window
        self.sources = sources or Sources()
        self._times = ProgressMap(ingestion=ingestion)
        self._entries: dict[Hashable, _Entry] = {}
        self._order: list[tuple[tuple[float, int], Hashable]] = []
        self._count = 0
        self._fields: Mapping[str, float] = {}
        self.reply = ReplyContext()

    @property
    def policy(self) -> ContextPolicy:
        return self._policy

    def follow(self, policy: ContextPolicy) -> None:
        """Goes on under another policy: what waits is put in order anew."""
        self._policy = policy
        self._fields = {}
        # In the order of arrival: each goes by what the policy kept of the one before it.
        for entry in sorted(self._entries.values(), key=lambda entry: entry.place[1]):
            entry.message = replace(entry.message, before=self._fields)
            entry.context = self._converted(entry.message, entry.upstream, self._target)
            entry.place = (entry.context.pri_local, entry.place[1])
            self._fields = entry.context.fields
        self._order = sorted((entry.place, key) for key, entry in self._entries.items())

    def aim(self, latency_seconds: float) -> None:
        """Goes on with another target: what waits is put in order anew."""
        self._target = replace(self._target, latency_seconds=latency_seconds)
        self.follow(self._policy)

    def give(self, share: float | None) -> None:
        """Messages that come from now on have tokens of another share."""
        self._target = replace(self._target, share=share)

    def arrive(self, key: Hashable, message: Message, upstream: PriorityContext | None = None) -> None:
        """A message has come; `upstream` is the context it was sent with, None at a source."""
        if self._fields:
            message = replace(message, before=self._fields)
        if message.heard:
            reached = self.sources.arrive_together(message.heard, message.time, message.seen)
            if reached is not None:
                self._times.update(reached, message.time)
        context = self._converted(message, upstream, self._target)
        self._fields = context.fields
        self._count += 1
        entry = _Entry(message, upstream, context, (context.pri_local, self._count), message.rows)
        self._entries[key] = entry
        insort(self._order, (entry.place, key), key=lambda item: item[0])

    def take(self, key: Hashable, rows: int) -> PriorityContext | None:
        """The stage takes rows of a message; the context they came with."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.rows -= rows
        if entry.rows <= 0:
            del self._entries[key]
            place = bisect_left(self._order, entry.place, key=lambda item: item[0])
            del self._order[place]
            for heard in entry.message.heard:
                self.sources.take(heard.source, heard.progress, heard.least)
        return entry.context

    def place_of(self, key: Hashable) -> tuple[float, int]:
        """Where a message stands; one that is not known yet stands last."""
        entry = self._entries.get(key)
        return entry.place if entry is not None else (float("inf"), self._count + 1)

    def places(self) -> dict[Hashable, tuple[float, int]]:
        """Where each message stands."""
        return {key: entry.place for key, entry in self._entries.items()}

    @property
    def rows(self) -> int:
        return sum(entry.rows for entry in self._entries.values())

    @property
    def rows_next(self) -> int | None:
        """Rows that belong to the next turn by the policy; None for all that wait."""
        if self._policy.portion == float("inf") or not self._order:
            return None
        first = self._entries[self._order[0][1]].context
        rows = 0
        for _, key in self._order:
            entry = self._entries[key]
            apart = entry.context.pri_global - first.pri_global
            if entry.context.deferred != first.deferred or apart > self._policy.portion:
                break
            rows += entry.rows
        return rows

    @property
    def cost_error_seconds(self) -> float:
        """What the policy puts on the cost of the next turn: drawn for its first message."""
        first = self._entries[self._order[0][1]].message.id if self._order else ""
        return self._policy.cost_error(self._target.stage, first)

    def next_context(self, cost_seconds: float, now: float) -> PriorityContext | None:
        """That of the next message, with what a turn of all that waits would cost; None if none waits."""
        if not self._order:
            return None
        entry = self._entries[self._order[0][1]]
        target = self._targeted(cost_seconds, self._frontier(entry.message, now))
        return self._converted(entry.message, entry.upstream, target)

    def context_of(self, message: Message, cost_seconds: float, frontier: Frontier | None) -> PriorityContext:
        """That of work that comes in no message: a flush, or rows that Spark reads itself."""
        return self._policy.at_source(message, self._targeted(cost_seconds, frontier))

    def _targeted(self, cost_seconds: float, frontier: Frontier | None) -> Target:
        """The target as it is now. Made at every look, so that it is spelled out: `replace` is slow."""
        known = self._target
        return Target(
            known.stage,
            known.tenant,
            known.latency_seconds,
            known.slide_seconds,
            known.upstream_slide_seconds,
            ReplyContext(cost_seconds, self.reply.path_seconds),
            frontier,
            known.share,
        )

    def _converted(
        self, message: Message, upstream: PriorityContext | None, target: Target
    ) -> PriorityContext:
        if upstream is None:
            return self._policy.at_source(message, target)
        return self._policy.at_operator(upstream, message, target)

    def _frontier(self, first: Message, now: float) -> Frontier | None:
        """The next window to be completed: the first that ends after what the stage has closed."""
        if self._window is None or first.progress is None:
            return None
        taken = self.sources.taken(now)
        closed = first.progress if taken is None else min(taken, first.progress)
        needed = self._needed(closed, self._window)
        self.sources.forget_below(needed)
        if (at := self.sources.completed_at(needed)) is not None:
            return Frontier(needed, at, complete=True)
        arrived = self.sources.arrived(now)
        if arrived is not None and arrived >= needed:
            # By the silence of a source, not by a row.
            return Frontier(needed, now, complete=True)
        return Frontier(needed, self._times.time_of(needed), complete=False)

    @staticmethod
    def _needed(closed: float, window: WindowSpan) -> float:
        """The progress that completes the first window which ends after `closed`."""
        delay = window.delay_seconds
        return transform(closed - delay, window.slide_seconds, offset=window.offset_seconds) + delay

    def expected_start(self, cost_seconds: float, now: float) -> Start | None:
        """By when a turn must start that completes the next window, though no row of it waits yet."""
        if self._window is None or not getattr(self._policy, "semantics", True):
            return None
        taken = self.sources.taken(now)
        if taken is None:
            return None
        time = self._times.time_of(self._needed(taken, self._window))
        if time is None:
            return None
        latency = self._target.latency_seconds
        reserve = reserve_seconds(latency)
        by = time + latency - cost_seconds - self.reply.path_seconds - reserve
        return Start(by, self._target.stage, cost_seconds, time, time + latency, reserve)
