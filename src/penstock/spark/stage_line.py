"""The line of a running stage: what its queues bring, as messages, and how far their event time has come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from penstock.measure.profiles import StageProfile
from penstock.queues.cursor import Consumer
from penstock.queues.segment import Segment, Slice
from penstock.queues.topic import TopicCursor
from penstock.scheduling.contexts import (
    PATIENT_SECONDS,
    Message,
    PriorityContext,
    ReplyContext,
    Target,
    last_step,
)
from penstock.scheduling.laxity import Start
from penstock.scheduling.line import Line, WindowSpan
from penstock.scheduling.outlook import Costs, Waiting, figures, known_below, order
from penstock.scheduling.policies import ContextPolicy
from penstock.scheduling.progress import ANY_SOURCES, Heard, Sources, SourcesRule

CLOSED = "\0closed"
"""Stands for a column: the end of the last window that a stage further up has closed."""


@dataclass(frozen=True)
class EventTime:
    """The event time of a stage: its column, how late rows may be, and the window over it, if any."""

    column: str
    delay_seconds: float
    size_seconds: float | None = None
    slide_seconds: float | None = None
    offset_seconds: float = 0.0

    @property
    def span(self) -> WindowSpan | None:
        if self.slide_seconds is None:
            return None
        return WindowSpan(self.slide_seconds, self.delay_seconds, self.offset_seconds)


@dataclass(frozen=True)
class LineSettings:
    """Whose line it is, and what is known of its stage."""

    stage: str
    tenant: str
    latency_seconds: float | None
    share: float | None
    event_time: EventTime | None = None
    sources: SourcesRule = ANY_SOURCES
    stateful: bool = False


class StageLine:
    """Feeds a `Line` from the queues of a stage; every method may be called from any thread."""

    def __init__(
        self,
        settings: LineSettings,
        consumers: Mapping[str, Consumer | TopicCursor],
        policy: ContextPolicy,
        arrived: Callable[[str, Segment], None] = lambda queue, segment: None,
    ):
        """`arrived` is told of each segment, and its queue, when it is seen first."""
        self._settings = settings
        self._arrived = arrived
        self._consumers = consumers
        self._event_time = settings.event_time
        target = Target(
            settings.stage,
            settings.tenant,
            settings.latency_seconds or PATIENT_SECONDS,
            self._event_time.slide_seconds if self._event_time else None,
            share=settings.share,
        )
        self._sources: dict[str, Sources] = {}
        span = self._event_time.span if self._event_time else None
        own = self._tracked(self._event_time.column) if self._event_time else None
        self._line = Line(policy, target, window=span, sources=own)
        self._slide_above = 0.0
        self._replies: dict[str, ReplyContext] = {}
        self._first: PriorityContext | None = None
        self._lock = threading.RLock()

    def aim(self, latency_seconds: float | None) -> None:
        """Goes on with another target; None: it may take its time."""
        with self._lock:
            self._line.aim(latency_seconds or PATIENT_SECONDS)

    def give(self, share: float | None) -> None:
        """What comes from now on has another share of the throughput."""
        with self._lock:
            self._line.give(share)

    def _tracked(self, column: str) -> Sources:
        if column not in self._sources:
            self._sources[column] = Sources(self._settings.sources)
        return self._sources[column]

    def look(self, now: float, policy: ContextPolicy | None = None) -> None:
        """Takes in what has come to the queues; `policy` is the one that counts now."""
        with self._lock:
            if policy is not None and policy != self._line.policy:
                self._line.follow(policy)
            for queue, consumer in self._consumers.items():
                for segment, rows in consumer.take_fresh():
                    self._arrived(queue, segment)
                    self._arrive(queue, segment, rows, now)

    def _arrive(self, queue: str, segment: Segment, rows: int, now: float) -> None:
        time = segment.arrivals.oldest if segment.arrivals.bins else segment.published
        own, others = self._heard_of(queue, segment)
        for column, heard in others.items():
            self._tracked(column).arrive_together(heard, time, now)
        message = Message(
            f"{queue}/{segment.sequence}",
            rows,
            time,
            own,
            seen=now,
        )
        stored = segment.context.get("priority")
        upstream = None if stored is None else PriorityContext.from_json(stored)
        self._line.arrive((queue, segment.sequence), message, upstream)

    def _heard_of(self, queue: str, segment: Segment) -> tuple[tuple[Heard, ...], dict[str, list[Heard]]]:
        """What a segment tells of its sources: in the stage's own column, and in the others.

        Its own column is the line's to track, unless how far it has come is not known.
        """
        found: dict[str, list[Heard]] = {}
        for column, each in self._heard(queue, segment):
            found.setdefault(column, []).append(each)
        own = self._event_time.column if self._event_time else ""
        if any(each.progress == -inf for each in found.get(own, ())):
            return (), found
        return tuple(found.pop(own, ())), found

    def _heard(self, queue: str, segment: Segment) -> Iterator[tuple[str, Heard]]:
        if segment.together is None:
            source = f"{queue}|{segment.producer}"
            for column, reached in self._progress_of(segment).items():
                yield column, Heard(source, reached, self._least(segment, column))
            return
        for name, ranges in segment.together.items():
            for column, (low, high) in ranges.items():
                yield column, Heard(f"{queue}|{name}", high, low)

    def _progress_of(self, segment: Segment) -> dict[str, float]:
        """How far event time has come with a segment, by column.

        The stage that wrote it says so, as it knows its sources apart (-inf: not known yet); else it is the
        greatest value. A column that stands at the end of the last window closed above has come to that.
        """
        told = segment.context.get("progress", {})
        reached: dict[str, float] = {}
        for column, (_, high) in segment.event_ranges.items():
            said = told.get(column, high)
            reached[column] = -inf if said is None else said
        closed = segment.context.get("closed")
        if closed is not None:
            self._slide_above = max(self._slide_above, segment.context["slide"])
            for column in _at_the_end(segment):
                if column not in told:
                    reached[column] = closed
            reached[CLOSED] = closed
        return reached

    def _least(self, segment: Segment, column: str) -> float | None:
        if column == CLOSED:
            return min((segment.event_ranges[each][0] for each in _at_the_end(segment)), default=None)
        return segment.event_ranges[column][0] if column in segment.event_ranges else None

    def took(self, slices: Mapping[str, tuple[Slice, ...]], now: float) -> dict[str, Any]:
        """The stage takes these rows; the context that goes with what it makes of them."""
        with self._lock:
            self.look(now)
            first: PriorityContext | None = None
            for queue, pieces in slices.items():
                for piece in pieces:
                    context = self._line.take((queue, piece.segment.sequence), piece.rows)
                    if piece.end == piece.segment.rows:
                        self._passed(queue, piece.segment)
                    if context is not None and (first is None or order(context) < order(first)):
                        first = context
            self._first = first
            return self._context(first, now)

    def context(self, now: float) -> dict[str, Any]:
        """The same once more, for what leaves without rows being taken: event time may have gone on."""
        with self._lock:
            return self._context(self._first, now)

    def _passed(self, queue: str, segment: Segment) -> None:
        _, others = self._heard_of(queue, segment)
        for column, heard in others.items():
            for each in heard:
                self._tracked(column).take(each.source, each.progress, each.least)

    def _context(self, first: PriorityContext | None, now: float) -> dict[str, Any]:
        made: dict[str, Any] = {} if first is None else {"priority": first.to_json()}
        if self._settings.stateful:
            return made | self._of_state(now)
        told = {column: sources.taken(now) for column, sources in self._sources.items()}
        closed = told.pop(CLOSED, None)
        if closed is not None:
            made |= {"closed": closed, "slide": self._slide_above}
        return {**made, "progress": told} if told else made

    def _of_state(self, now: float) -> dict[str, Any]:
        """What is known of the event time of results: rows that a stage remembers may leave much later."""
        event = self._event_time
        if event is None:
            return {}
        taken = self.progress(now)
        if event.slide_seconds is None:
            return {"progress": {event.column: None if taken is None else taken - event.delay_seconds}}
        if taken is None:
            return {}
        ended = last_step(taken - event.delay_seconds, event.slide_seconds, event.offset_seconds)
        return {"closed": ended, "slide": event.slide_seconds}

    def gave_back(self, slices: Mapping[str, tuple[Slice, ...]], now: float) -> None:
        """These rows wait again."""
        with self._lock:
            for queue, pieces in slices.items():
                for piece in pieces:
                    if piece.end < piece.segment.rows:
                        # What was heard with it is still there, and comes with `_arrive` once more.
                        self._passed(queue, piece.segment)
                    self._line.take((queue, piece.segment.sequence), piece.segment.rows)
                    self._arrive(queue, piece.segment, piece.segment.rows - piece.start, now)

    def progress(self, now: float) -> float | None:
        """How far the event time of all sources has come in what was taken; None while it is not known."""
        if self._event_time is None:
            return None
        with self._lock:
            return self._sources[self._event_time.column].taken(now)

    def completed_at(self, progress: float) -> float | None:
        """When the last source had come so far; None if that is not known."""
        if self._event_time is None:
            return None
        with self._lock:
            return self._sources[self._event_time.column].completed_at(progress)

    @property
    def rows_known(self) -> int:
        """Rows that wait, by the line's own count."""
        with self._lock:
            return self._line.rows

    def wake(self, now: float) -> None:
        """The stage could not run: no source counts as silent for that."""
        with self._lock:
            for sources in self._sources.values():
                sources.wake(now)

    def expected_start(self, profile: StageProfile | None, now: float) -> Start | None:
        """By when the turn must start that completes the next window, though none of its rows wait."""
        with self._lock:
            return self._line.expected_start(profile.mean_seconds if profile else 0.0, now)

    def key_of(self, queue: str) -> Callable[[Segment], Any]:
        """The order in which segments of a queue are taken, as it is now; what comes later stands last."""
        with self._lock:
            places, last = self._line.places(), (inf, 0)
        return lambda segment: places.get((queue, segment.sequence), last)

    def figures(
        self,
        waiting: Waiting,
        now: float,
        profile: StageProfile | None,
        grain_seconds: float,
        slots: int = 1,
    ) -> dict[str, Any]:
        """What a view of the stage, with so many slots, says about its next message and its costs."""
        with self._lock:
            return figures(self._line, waiting, now, Costs(profile, slots, grain_seconds))

    def replied(self, stage: str, reply: ReplyContext) -> None:
        """A stage below has told what it and its path cost."""
        with self._lock:
            self._replies[stage] = reply
            self._line.reply = known_below(self._line.policy, self._replies.values())

    def reply(self, profile: StageProfile | None) -> ReplyContext:
        """What the stage tells those above it."""
        cost = 0.0 if profile is None else profile.mean_seconds
        with self._lock:
            own = ReplyContext(cost, self._line.reply.path_seconds)
            return self._line.policy.prepare_reply(own)

    def to_json(self) -> dict[str, dict[str, float]]:
        """How far each source was taken, by column: kept in the stage's journal."""
        with self._lock:
            return {column: sources.to_json() for column, sources in self._sources.items()}

    def restore(self, kept: Mapping[str, Mapping[str, float]], now: float) -> None:
        with self._lock:
            for column, taken in kept.items():
                self._tracked(column).restore(dict(taken), now)


def _at_the_end(segment: Segment) -> list[str]:
    """The columns that stand at the end of the last window closed above, or a microsecond before it."""
    closed, slide = segment.context["closed"], segment.context["slide"]
    return [column for column, (_, high) in segment.event_ranges.items() if closed - slide < high <= closed]
