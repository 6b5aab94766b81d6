"""Held turns over a source that Spark reads itself: rate, files, Kafka, or a query the user brought along."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.queues.journal import Journal
from penstock.scheduling.decisions import Grant
from penstock.scheduling.stage_view import StageView
from penstock.spark.backlogs import Backlog
from penstock.spark.bookkeeping import Outcome
from penstock.spark.gate import Gate
from penstock.spark.query import HeldQuery, QuerySettings
from penstock.spark.results import Dating, Rows
from penstock.spark.stage_base import Destination, Place, StageBase, set_pool
from penstock.spark.stage_line import EventTime
from penstock.spark.turn_input import TurnInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class NativeParts:
    """What a native stage is made of: its query, and what is known of its source."""

    frame: DataFrame
    settings: QuerySettings
    backlog: Backlog
    event_time: EventTime | None


class NativeStage(StageBase):
    """A stage whose batches Spark cuts from its own source, at the moment of the grant.

    The first batch after a start, and any that comes without a grant, asks for its slot in the callback.
    """

    slots_may_change = False

    def __init__(self, place: Place, destination: Destination, journal: Journal, parts: NativeParts):
        super().__init__(place, destination, journal, "held")
        self._backlog = parts.backlog
        self._event_time = parts.event_time
        self._lock = threading.RLock()
        self._asking: Gate | None = None
        self._asked_at = 0.0
        self._grant: Grant | None = None
        self._released = False
        # Released and not held: Spark looks for rows by itself, and the next batch asks for its slot.
        self._adrift = False
        self._seen_idle = False
        self._last_took = TurnInput()
        self._look_at: float | None = None
        self._flush_due = False
        self._flush_since = 0.0
        self._query = HeldQuery(parts.frame, self._on_batch, parts.settings)
        # A start under way is waited for by a stop, and one that comes after a stop starts nothing.
        self._life = threading.Lock()
        self._ended = False

    def start(self) -> None:
        """Starts the query; it asks for a slot as soon as it has rows."""
        with self._life:
            if not self._ended:
                self._query.start(ran_before=self.journal.entry.batch >= 0)

    def count(self, now: float) -> int:
        """Nothing while its query reads by itself: what waits is not known then."""
        with self._lock:
            if self._asking is not None or not self._query.started or self._released or self._adrift:
                return 0
        rows = self._backlog.waiting(now).rows
        self.books.waiting(rows, now)
        if not rows:
            self._look_again(now)
        return rows

    def view(self, now: float) -> StageView | None:
        if not self.may_run:
            return None
        with self._lock:
            if self._asking is not None:
                return self.base_view(0, self._asked_at, self._asked_at, True)
            if not self._query.started or self._released or self._adrift:
                return None
        waiting = self._backlog.waiting(now)
        self.books.waiting(waiting.rows, now)
        if waiting.rows:
            span = self._event_time.span if self._event_time is not None else None
            frontier = self._backlog.frontier(span, now) if span is not None else None
            return self.base_view(waiting.rows, waiting.since, waiting.since, self._flush_due, frontier)
        if self._flush_due:
            return self.base_view(0, self._flush_since, self._flush_since, True)
        self._look_again(now)
        return None

    def _look_again(self, now: float) -> None:
        time = self._backlog.look_again_at(now)
        if time is None or (self._look_at is not None and self._look_at <= time):
            return
        self._look_at = time
        self.place.dispatcher.at(time, self._look)

    def _look(self) -> None:
        self._look_at = None
        try:
            self._backlog.look()
        finally:
            # Who looks again is settled there.
            self.place.dispatcher.changed(self)

    def turn(self, grant: Grant) -> None:
        try:
            self.books.began(grant.at, 0)
            with self._lock:
                self._grant = grant
                asking = self._asking
                self._flush_due = False
            if asking is not None:
                asking.release()
            else:
                self._cut()
        except Exception as error:
            self.fail(error)

    def _cut(self) -> None:
        """Lets the held query build its next batch, with the watermark that it will reach."""
        if self._event_time is not None:
            greatest = self._backlog.before(self._query, self.now)
            if greatest is not None:
                self._query.raise_watermark(greatest, self._event_time.delay_seconds)
        with self._lock:
            self._released = True
        self._query.gate.release()

    def _on_batch(self, frame: DataFrame, batch: int) -> bool:
        try:
            self._wait_for_grant()
            return self._run(frame, batch)
        except Exception as error:
            # Broken off by a stop it is no failure: the next start runs the batch again.
            if not self._query.gate.is_open:
                self.fail(error)
            raise

    def _wait_for_grant(self) -> None:
        with self._lock:
            self._released = self._adrift = False
            if self._grant is not None or self._query.gate.is_open:
                return
            asking = self._asking = Gate()
            self._asked_at = self.now
        self.place.dispatcher.changed(self)
        asking.hold()
        with self._lock:
            self._asking = None

    def _run(self, frame: DataFrame, batch: int) -> bool:
        set_pool(self.place)
        again = batch <= self.journal.entry.batch
        result = self.result(Rows.of(frame), Dating(TurnInput()))
        if again:
            frame.write.format("noop").mode("overwrite").save()
        else:
            written = self.write(result, batch)
            self.journal.write(replace(self.journal.entry, batch=batch, outputs=written.outputs))
        after = self._query.after_batch()
        took = self._backlog.after(self._query, after, self.now)
        if not again:
            visible_at = self.reveal(written, took, batch)
        if after.rows_read:
            self._query.suit(after.rows_read)
        with self._lock:
            grant, self._grant = self._grant, None
            self._flush_due = after.wants_flush and not self._backlog.listens
            self._flush_since = self.now
        if after.late_rows:
            self.tell_of_late(after.late_rows)
        if grant is not None and not again:
            self._last_took = took if took.rows else self._last_took
            arrivals = replace(self._dating(), took=self._last_took).arrivals(result.held_table)
            self.account(Outcome(batch, grant, took, took.rows, written.rows, visible_at), arrivals)
        elif grant is not None:
            self.books.abandoned(self.now)
        self.place.dispatcher.finished(self)
        return not self._backlog.listens

    def _dating(self) -> Dating:
        if self._event_time is None:
            return Dating(TurnInput())
        return Dating(TurnInput(), self._event_time.column, self._event_time.delay_seconds)

    def rescale(self, slots: int) -> float:
        raise PenstockError(
            f"slots must be for a stage that reads a queue, got {self.name!r}, whose source Spark reads "
            "itself: nothing was changed; put a queue() behind the source"
        )

    def check(self, alive: frozenset[str]) -> None:
        """Notices a query that has died, or that found nothing to do when it was granted a turn."""
        if self._query.has_died(alive):
            self.fail(self._query.error or PenstockError(f"the query of stage {self.name!r} ended by itself"))
            return
        # Twice in a row: between two batches a query looks idle for a moment.
        before, self._seen_idle = self._seen_idle, self._released and self._query.waits_for_data
        if before and self._seen_idle:
            with self._lock:
                if not self._released:
                    return
                self._released, self._grant, self._adrift = False, None, True
            try:
                self._backlog.nothing_came()
            finally:
                self.books.abandoned(self.now)
                self.place.dispatcher.finished(self)

    def fail(self, error: BaseException) -> None:
        with self._lock:
            self._grant = None
        super().fail(error)

    def stop(self) -> None:
        # The gate first: a batch that comes now sees it open, or is seen below.
        self._query.gate.open()
        with self._lock:
            asking = self._asking
        if asking is not None:
            asking.open()
        with self._life:
            self._ended = True
        self._query.stop()
