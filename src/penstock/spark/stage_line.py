"""The line of a running stage: what its queues bring, as messages, and how far their event time has come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.measure.profiles import StageProfile
from penstock.queues.cursor import Consumer
from penstock.queues.segment import Segment, Slice
from penstock.scheduling.contexts import (
    PATIENT_SECONDS,
    Frontier,
    Message,
    PriorityContext,
    ReplyContext,
    Target,
)
from penstock.scheduling.line import Line, WindowSpan
from penstock.scheduling.policies import ContextPolicy
from penstock.scheduling.progress import ANY_SOURCES, Sources, SourcesRule

CLOSED = "\0closed"
"""Stands for a column: the end of the last window that a stage further up has closed."""


@dataclass(frozen=True)
class EventTime:
    """The event time of a stage: its column, how late rows may be, and the window over it, if any."""

    column: str
    delay_seconds: float
    size_seconds: float | None = None
    slide_seconds: float | None = None

    @property
    def span(self) -> WindowSpan | None:
        return None if self.slide_seconds is None else WindowSpan(self.slide_seconds, self.delay_seconds)


@dataclass(frozen=True)
class LineSettings:
    """Whose line it is, and what is known of its stage."""

    stage: str
    tenant: str
    latency_seconds: float | None
    share: float | None
    slots: int
    event_time: EventTime | None = None
    sources: SourcesRule = ANY_SOURCES


class StageLine:
    """Feeds a `Line` from the queues of a stage; every method may be called from any thread."""

    def __init__(self, settings: LineSettings, consumers: Mapping[str, Consumer], policy: ContextPolicy):
        self._settings = settings
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
        self._span_above = 0.0
        self._replies: dict[str, ReplyContext] = {}
        self._lock = threading.RLock()

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
                for segment in consumer.take_fresh():
                    self._arrive(queue, segment, now)

    def _arrive(self, queue: str, segment: Segment, now: float) -> None:
        time = segment.arrivals.oldest if segment.arrivals.bins else segment.published
        source, progress = f"{queue}|{segment.producer}", self._progress_of(segment)
        own = self._event_time.column if self._event_time else ""
        for column, reached in progress.items():
            if column != own:
                self._tracked(column).arrive(source, reached, time, _least(segment, column), now)
        message = Message(
            f"{queue}/{segment.sequence}",
            segment.rows,
            time,
            progress.get(own),
            source,
            least_progress=_least(segment, own),
            seen=now,
        )
        stored = segment.context.get("priority")
        upstream = None if stored is None else PriorityContext.from_json(stored)
        self._line.arrive((queue, segment.sequence), message, upstream)

    def _progress_of(self, segment: Segment) -> dict[str, float]:
        """How far event time has come with a segment, by column.

        The stage that wrote it says so, as it knows its sources apart; else it is the greatest value. A
        column within the last windows that were closed above has come to their end.
        """
        told = segment.context.get("progress", {})
        reached = {column: told.get(column, high) for column, (_, high) in segment.event_ranges.items()}
        closed = segment.context.get("closed")
        if closed is not None:
            span = segment.context["span"]
            self._span_above = max(self._span_above, span)
            for column, (_, high) in segment.event_ranges.items():
                if closed - span <= high <= closed:
                    reached[column] = closed
            reached[CLOSED] = closed
        return reached

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
                    if context is not None and (first is None or context.pri_global < first.pri_global):
                        first = context
            return self._context(first, now)

    def _passed(self, queue: str, segment: Segment) -> None:
        source = f"{queue}|{segment.producer}"
        own = self._event_time.column if self._event_time else ""
        for column, reached in self._progress_of(segment).items():
            if column != own:
                self._tracked(column).take(source, reached, _least(segment, column))

    def _context(self, first: PriorityContext | None, now: float) -> dict[str, Any]:
        made: dict[str, Any] = {} if first is None else {"priority": first.to_json()}
        closed = self._closed(now)
        if closed is not None:
            return {**made, "closed": closed[0], "span": closed[1]}
        known = {column: sources.taken(now) for column, sources in self._sources.items()}
        told = {column: value for column, value in known.items() if value is not None}
        if CLOSED in told:
            made |= {"closed": told.pop(CLOSED), "span": self._span_above}
        return {**made, "progress": told} if told else made

    def _closed(self, now: float) -> tuple[float, float] | None:
        """The last window end that the stage has closed, and how far before it results may lie."""
        event, taken = self._event_time, self.progress(now)
        if event is None or event.slide_seconds is None or event.size_seconds is None or taken is None:
            return None
        ended = (taken - event.delay_seconds) // event.slide_seconds * event.slide_seconds
        return ended - (event.size_seconds - event.slide_seconds), event.size_seconds

    def gave_back(self, slices: Mapping[str, tuple[Slice, ...]], now: float) -> None:
        """These rows wait again."""
        with self._lock:
            for queue, pieces in slices.items():
                for piece in pieces:
                    self._line.take((queue, piece.segment.sequence), piece.segment.rows)
                    self._arrive(queue, piece.segment, now)

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

    def key_of(self, queue: str) -> Callable[[Segment], Any]:
        """The order in which the segments of a queue are taken."""
        return lambda segment: self._line.place_of((queue, segment.sequence))

    def figures(
        self, rows: int, since: float, now: float, profile: StageProfile | None, frontier: Frontier | None
    ) -> dict[str, Any]:
        """What a view of the stage says about its next message and its costs."""
        fixed, per_row = (profile.fixed_seconds, profile.row_seconds) if profile else (0.0, 0.0)
        cost = fixed + per_row * rows
        with self._lock:
            context = self._line.next_context(cost, now) if frontier is None else None
            if context is None:
                context = self._line.context_of(Message("turn", rows, since), cost, frontier)
            path = self._line.reply.path_seconds
            rows_next = self._line.rows_next
        return {
            "context": context,
            "rows_next": rows_next if rows_next is None or rows == 0 else max(rows_next, 1),
            "fixed_seconds": fixed,
            "row_seconds": per_row * self._settings.slots,
            "start_deadline": context.time + context.latency_seconds - cost - path,
        }

    def replied(self, stage: str, reply: ReplyContext) -> None:
        """A stage below has told what it and its path cost."""
        with self._lock:
            self._replies[stage] = reply
            known = ReplyContext()
            for each in self._replies.values():
                known = self._line.policy.process_reply(known, each)
            self._line.reply = known

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


def _least(segment: Segment, column: str) -> float | None:
    return segment.event_ranges[column][0] if column in segment.event_ranges else None
