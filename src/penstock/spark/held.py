"""Held turns over queues: a stage with state is a streaming query whose batches are grants."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.queues.journal import Journal
from penstock.scheduling.decisions import Grant
from penstock.scheduling.stage_view import StageView
from penstock.spark.arrow_files import BatchTable
from penstock.spark.bookkeeping import Outcome
from penstock.spark.checkpoint import Checkpoint, StateNotDivisible
from penstock.spark.direct import FramesBefore, runs
from penstock.spark.ends import Written
from penstock.spark.grant_books import GrantBooks
from penstock.spark.grant_ledger import GrantLedger
from penstock.spark.inputs import QueueInputs, Slices
from penstock.spark.planned_query import PlannedBatch, PlannedQuery, planned_once
from penstock.spark.query import HeldQuery, QuerySettings
from penstock.spark.results import Dating, Result, Rows
from penstock.spark.stage_base import Destination, Place, StageBase, own_pool, set_pool
from penstock.spark.stage_line import EventTime
from penstock.spark.turn_input import TurnInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("penstock")

WITHOUT_A_JOB = True
"""Whether turns of one task run without a job; a bench of what jobs cost says no."""
PLANNED_ONCE = True
"""Whether turns go on over the plan of an earlier one; a bench of what planning costs says no."""
PLANNING_TRIES = 3
"""Turns with rows by which the plan of a stage is one for any rows, or never is."""
Late = Callable[[Slices, float], "DataFrame"]
"""The rows of a grant that come too late, given the watermark, as dead letters."""


@dataclass(frozen=True)
class HeldParts:
    """What a held stage is made of: its queues, their grants, and what was read from its plan."""

    inputs: QueueInputs
    grants: GrantBooks
    frame: Callable[[int], DataFrame]
    """The streaming DataFrame for so many slots."""
    event_time: EventTime | None
    late: Late | None
    frames_before: FramesBefore
    copies: int = 1
    """Rows that the plan makes of one, for windows that overlap."""


class HeldStage(StageBase):
    """A stage whose turn is one batch of a streaming query.

    Spark's query commits a batch when the next is granted, so after a crash the last one runs again: its
    rows are kept until then, and its second output is discarded. Where the plan of a batch holds for any
    rows, Spark's query ends after one of its first, and turns are batches over that plan.
    """

    def __init__(self, place: Place, destination: Destination, journal: Journal, parts: HeldParts):
        super().__init__(
            place,
            destination,
            journal,
            "held",
            parts.inputs.consumers,
            parts.event_time,
            parts.inputs.sources,
        )
        self.inputs = parts.inputs
        self._grants = parts.grants
        self._ledger = GrantLedger(journal, parts.inputs, parts.grants)
        self._event_time = parts.event_time
        self._context: Mapping[str, Any] = {}
        self._late = parts.late
        self._frames_before = parts.frames_before
        self._last_took, self._last_served = TurnInput(), 0
        self._lock = self._ledger.lock
        # Of a change of slots and a stop, one comes after the other.
        self._life = threading.Lock()
        self._stopped = False
        self._grant: Grant | None = None
        self._seen_idle: Grant | None = None
        # Released and not held, as a turn found nothing to do: Spark then looks for rows by itself.
        self._adrift = False
        self._flush_due = False
        self._flush_since = 0.0
        self._parts = parts
        self._checkpoint = Checkpoint(place.folder / "checkpoint")
        self._query: HeldQuery | PlannedQuery = self._new_query()
        for slices in self._ledger.recover():
            self._context = self.line.took(slices, self.now)
        self._recovered_at = self.now
        self._reached_before = self.line.progress(self.now)
        self._flush_due, self._flush_since = journal.entry.flush, self.now

    def _new_query(self) -> HeldQuery:
        place, copies = self.place, self._parts.copies
        frame = self._parts.frame(self.slots)
        settings = QuerySettings(
            place.name, self._checkpoint.path, self.slots, copies=copies, store=place.state_store
        )
        self._table = BatchTable(frame, place.folder / "scratch" / "batch.arrow")
        self._planning_tries = PLANNING_TRIES if PLANNED_ONCE else 0
        return HeldQuery(frame, self._on_batch, settings)

    def view(self, now: float) -> StageView | None:
        rows = self.count(now)
        if not self.may_run:
            return None
        with self._lock:
            if self._grant is None and self._ledger.outstanding:
                # Since one moment, however often it is looked at: patience counts from then.
                found, again = self._recovered_at, rows + self._ledger.took.rows
                if self._is_new and not again:
                    return self._view_of_a_start()
                return self.base_view(again, found, found, flush=not again)
        since = self.inputs.ready_since
        flush_since = self._flush_since if self._flush_due else None
        if rows == 0 or since is None:
            return self._view_without_rows()
        oldest = self.inputs.oldest_arrival or since
        return self.base_view(rows, since, oldest, self._flush_due, flush_since=flush_since)

    def _view_without_rows(self) -> StageView | None:
        if self._flush_due:
            return self.base_view(0, self._flush_since, self._flush_since, True)
        return self._view_of_a_start() if self._is_new and self._grant is None else None

    @property
    def _is_new(self) -> bool:
        """Whether no batch of it has ended: one without rows, in idle slots, spares its first rows that."""
        return self.journal.entry.batch < 0

    def _view_of_a_start(self) -> StageView:
        made = self.base_view(0, self.place.started_at, self.place.started_at, True)
        return replace(made, starts=True, start_deadline=inf)

    def turn(self, grant: Grant) -> None:
        try:
            with self._lock:
                # From here on nobody else finds a flush that is due. A query that is adrift takes what is
                # granted by itself, maybe before this thread has come to let it go.
                self._grant = grant
                adrift, self._adrift = self._adrift, False
            if not adrift:
                self._plan_once()
            # What takes long is not done under the lock: who holds the dispatcher's may want it, to look at
            # the stage.
            with self._lock:
                # A query that starts runs a batch only for a grant, be it one without rows for what is to be
                # flushed.
                cuts = not self._ledger.outstanding and (grant.rows > 0 or not self._started)
            slices = self._cut(grant) if cuts else None
            self.books.began(grant.at, self.inputs.rows_waiting)
            with self._lock:
                if slices is not None:
                    self._ledger.add(slices)
                self._flush_due = False
            if slices is not None:
                self.place.dispatcher.took(self, self._ledger.took.rows)
            self._begin(adrift)
        except BaseException as error:
            self.fail(error)

    @property
    def _started(self) -> bool:
        return not isinstance(self._query, HeldQuery) or self._query.started

    def _plan_once(self) -> None:
        """From its second turn on, if it can be, the stage runs batches over one plan, without a query.

        Only with nothing granted and no flush due: what Spark finds when it is released, it runs by itself.
        """
        query = self._query
        if not isinstance(query, HeldQuery) or not self._planning_tries or not query.holds:
            return
        if self._ledger.outstanding or self._flush_due or not self._last_served:
            return
        self._planning_tries -= 1
        self._query = planned_once(query, self._on_planned) or query
        # It reads its state once more, for a run of its own.
        self.loads_state = self.loads_state or self._query is not query

    def _cut(self, grant: Grant) -> Slices:
        """The rows of the turn."""
        # Rows of a segment may stand in any order of event time: the first part of a cut one would
        # raise the watermark beyond rows of the second, which would then be late.
        self.line.look(self.now)
        least = max(min(self.place.block_rows, grant.rows), 1)
        slices = self.inputs.take(grant.rows, whole_segments=True, least=least, order=self.line.key_of)
        self._context = self.line.took(slices, self.now)
        return slices

    def _begin(self, adrift: bool) -> None:
        query = self._query
        query.suit(self._ledger.took.rows)
        if isinstance(query, HeldQuery) and not self._started:
            query.start(ran_before=self.journal.entry.batch >= 0)
            return
        self._raise_watermark()
        if not adrift:
            query.go()

    def _raise_watermark(self) -> bool:
        """To how far all sources have come: windows up to there are closed by the next batch itself."""
        reached = self.line.progress(self.now)
        if self._event_time is None or reached is None:
            return False
        return self._query.raise_watermark(reached, self._event_time.delay_seconds)

    def _on_batch(self, frame: DataFrame, batch: int) -> bool:
        """Runs a batch of the query; whether to hold after it."""
        try:
            rows = Rows(lambda: frame, lambda: self._table.of(frame, here=self._runs_here))
            return self._run(rows, batch)
        except Exception as error:
            # Broken off by a stop it is no failure: the next start runs the batch again.
            if not (isinstance(self._query, HeldQuery) and self._query.gate.is_open):
                self.fail(error)
            raise

    def _on_planned(self, planned: PlannedBatch, batch: int) -> None:
        """Runs a batch that Spark's query has no part in."""
        rows = Rows(planned.frame, lambda: self._table.written(planned.write, self._runs_here))
        self._run(rows, batch, planned.commit)

    def _run(self, rows: Rows, batch: int, commit: Callable[[], None] = lambda: None) -> bool:
        served = self._grants.take_served()
        set_pool(self.place)
        if batch <= self.journal.entry.batch:
            rows.frame().write.format("noop").mode("overwrite").save()
            # Windows that it has completed: Spark runs what flushes them next.
            self._raise_watermark()
            return self._grant is None
        took = self._ledger.took if served else TurnInput()
        # Windows that a turn without rows brings out were completed by the turn before it.
        self._last_took, self._last_served = took if served else self._last_took, served
        starts = self._is_new and not took.rows
        result = self.result(rows, self._dating(self._last_took), self._context)
        written = _only_started(rows) if starts else self.write(result, batch)
        written = self._after(result, written, batch, served)
        self._commit(batch, served, written)
        visible_at = self.reveal(written, took, batch)
        # Before the next turn is granted, which may move the watermark.
        commit()
        self._ledger.let_go()
        self.inputs.tell()
        with self._lock:
            grant, done = self._grant, not self._ledger.outstanding
            if grant is not None and not done:
                return False
            self._grant, self._adrift = None, False
        if grant is None:
            self.place.dispatcher.changed(self)
            return True
        if starts:
            self.books.abandoned(self.now)
        else:
            self.account(Outcome(batch, grant, took, took.rows, written.rows, visible_at), result.arrivals)
        self.place.dispatcher.finished(self)
        return True

    @property
    def _runs_here(self) -> bool:
        """On a cluster state is where the executors are; here a job costs more than most turns do."""
        return WITHOUT_A_JOB and not self.place.on_cluster

    def _dating(self, took: TurnInput) -> Dating:
        if self._event_time is None:
            return Dating(took)
        column, delay = self._event_time.column, self._event_time.delay_seconds
        return Dating(took, column, delay, self.line.completed_at)

    def _after(self, result: Result, written: Written, batch: int, served: int) -> Written:
        """Late rows to the dead letters, and whether Spark wants an empty batch to flush windows."""
        self._raise_watermark()
        after = self._query.after_batch()
        with self._lock:
            self._flush_due = after.wants_flush
            self._flush_since = self.now
        if not after.late_rows or not served:
            return written
        if self._late is None or self.destination.dead is None:
            self.tell_of_late(after.late_rows)
            return written
        # Spark's figure counts groups and windows; only that there is something late is taken from it.
        late = self._late(self._ledger.merged, self._query.late_threshold(batch))
        buried = self.destination.dead.write(self.result(Rows.of(late), result.dating), batch)
        self.books.late_rows += buried.rows
        return self.with_dead(written, buried)

    def _commit(self, batch: int, served: int, written: Written) -> None:
        """Spark has not committed the batch yet, so its rows stay behind the released positions."""
        with self._lock:
            turn = partial(
                replace,
                batch=batch,
                flush=self._flush_due,
                outputs=written.outputs,
                progress=self.line.to_json(),
            )
            self._ledger.commit(served, turn)

    def fail(self, error: BaseException) -> None:
        with self._lock:
            self._grant = None
        super().fail(error)

    def runs_before(self, operator: str) -> bool:
        """Whether the operators before this one run on the rows of the turn that failed."""
        return runs(self._frames_before(operator), self._ledger.merged)

    def check(self, alive: frozenset[str]) -> None:
        """Notices a query that has died, or that found nothing to do when it was granted a turn."""
        if self._query.has_died(alive):
            self.fail(self._query.error or PenstockError(f"the query of stage {self.name!r} ended by itself"))
            return
        self._look_for_silent_sources()
        # Twice in a row: between two batches a query looks idle for a moment.
        idle = self._grant if self._grant is not None and self._query.waits_for_data else None
        before, self._seen_idle = self._seen_idle, idle
        if idle is not None and before is idle:
            with self._lock:
                if self._grant is not idle:
                    return
                self._grant, self._adrift = None, True
            self.books.abandoned(self.now)
            self.place.dispatcher.finished(self)

    def _look_for_silent_sources(self) -> None:
        """Windows that waited for a source which says nothing any more are flushed."""
        if not self.may_run:
            self.line.wake(self.now)
            return
        self.line.look(self.now)
        with self._lock:
            rests = self._grant is None and not self._adrift and not self._ledger.outstanding
            if not rests or self._flush_due or not self._silence_completes_windows():
                return
            self._context = self.line.context(self.now)
            self._flush_due, self._flush_since = True, self.now
        self.place.dispatcher.changed(self)

    def _silence_completes_windows(self) -> bool:
        if self._started:
            return self._query.holds and self._raise_watermark() and self._query.after_batch().wants_flush
        # Since a restart no row came. What Spark had closed before it is told by how far sources had come.
        reached = self.line.progress(self.now)
        before, ran_before = self._reached_before, self.journal.entry.batch >= 0
        return ran_before and reached is not None and (before is None or reached > before)

    def rescale(self, slots: int) -> float:
        """Stops between two turns, has Spark divide its state, and goes on; the seconds without a turn."""
        if not self._checkpoint.is_divisible:
            raise StateNotDivisible(self.name)
        self.changing = True
        try:
            self.place.dispatcher.changed(self)
            while not self.place.dispatcher.wait_for_end(self):
                log.info("stage %r is still in a turn: its slots change when that ends", self.name)
            if not self._checkpoint.is_divisible:
                raise StateNotDivisible(self.name)
            began = self.now
            with self._life, own_pool(self.place):
                self._divide(slots)
        finally:
            self.changing = False
            self.place.dispatcher.changed(self)
        return max(self.now - began, 0.0)

    def _goes_on(self, query: HeldQuery | PlannedQuery, slots: int) -> PlannedQuery | None:
        """Over the plan that is there, without a new query and its first batch; None where they must be."""
        try:
            return query.divided(slots) if isinstance(query, PlannedQuery) else None
        except Exception:
            log.exception("stage %r goes on with a new query, as its plan could not be kept", self.name)
            return None

    def _divide(self, slots: int) -> None:
        """Either to the end or, if Spark refuses, not at all."""
        if self._stopped:
            raise PenstockError(f"stage {self.name!r} must run for its slots to change, but has stopped")
        query, goes_on = self._query, None
        try:
            query.stop(lambda: self._flush_due)
            self._adrift = False
            self._checkpoint.divide(self.place.session, slots)
            self.go_by(slots)
            goes_on = self._goes_on(query, slots)
        except Exception as error:
            if self._checkpoint.unfinished is not None:
                self.fail(error)
                raise
            log.warning("the slots of stage %r stay as they are: %s", self.name, error)
            raise PenstockError(f"the state of stage {self.name!r} could not be divided: {error}") from error
        finally:
            self._query = goes_on or self._new_query()
            self._reached_before = self.line.progress(self.now)
            self.loads_state = True

    def stop(self) -> None:
        with self._life, own_pool(self.place):
            self._stopped = True
            try:
                # Spark flushes by itself once it is released, but would not after a restart.
                self._query.stop(lambda: self._flush_due)
            finally:
                self._ledger.close()


def _only_started(rows: Rows) -> Written:
    """A batch without rows, of which no sink hears."""
    rows.table()
    return Written(0)
