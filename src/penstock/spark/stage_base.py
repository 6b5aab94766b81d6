"""What direct and held stages have in common: a place, an end, books, and a way to fail."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from penstock.errors import PenstockError
from penstock.measure.turns import TurnKind, TurnRecord
from penstock.queues.cursor import Consumer
from penstock.queues.journal import Journal
from penstock.queues.segment import Arrivals, Segment
from penstock.queues.topic import TopicCursor
from penstock.scheduling.contexts import Frontier
from penstock.scheduling.laxity import Start
from penstock.scheduling.outlook import Waiting
from penstock.scheduling.progress import ANY_SOURCES, SourcesRule
from penstock.scheduling.stage_view import StageView
from penstock.spark.bookkeeping import Books, Outcome
from penstock.spark.checkpoint import StateStore
from penstock.spark.dispatcher import Dispatcher, Schedulable
from penstock.spark.ends import End, FrameEnd, Output, QueueEnd, Written
from penstock.spark.profiles import Profiles
from penstock.spark.results import Dating, Result, Rows, is_small
from penstock.spark.slot_meters import SlotMeters
from penstock.spark.stage_line import EventTime, LineSettings, StageLine
from penstock.spark.surroundings import no_cold_tasks
from penstock.spark.turn_input import TurnInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock")

POOL = "spark.scheduler.pool"


@dataclass(frozen=True)
class Place:
    """Where a stage stands: its names, its slots and target, its directory, and who drives it."""

    name: str
    pipeline: str
    slots: int
    latency_seconds: float | None
    folder: Path
    session: SparkSession
    dispatcher: Dispatcher
    failed: Callable[[Any, BaseException], None]
    java_context: Any
    listeners: list[Callable[[TurnRecord], None]]
    started_at: float
    """Of the whole pipeline: rates of its stages are compared."""
    profiles: Profiles
    meters: SlotMeters
    depth: int = 0
    tenant: str = ""
    share: float | None = None
    block_rows: int = 0
    state_store: StateStore | None = None
    on_cluster: bool = False
    """Whether its slots are executors of their own, and not threads of the driver."""
    cold_tasks: Callable[[str], int] = no_cold_tasks


@dataclass(frozen=True)
class Destination:
    """Where a stage's rows go: its end, whether that is a sink, and the queue of its dead letters."""

    end: End
    is_sink: bool
    dead: QueueEnd | None = None
    splits: bool = False
    """Whether rows carry a column `dead_letter` to be split by."""


class StageBase:
    """The part of a stage's life that does not depend on how its turns run.

    What only some kinds of stages have to tell, the others answer here.
    """

    slots_may_change = True
    runs_before: Callable[[str], bool] | None = None
    """Tells whether the operators before a given one run on the rows of the turn that failed; None where that
    cannot be tried."""

    def __init__(
        self,
        place: Place,
        destination: Destination,
        journal: Journal,
        kind: TurnKind,
        consumers: Mapping[str, Consumer | TopicCursor] | None = None,
        event_time: EventTime | None = None,
        sources: SourcesRule = ANY_SOURCES,
    ):
        self.place = place
        self.destination = destination
        self.journal = journal
        self.paused = False
        self.changing = False
        """While its slots change, it gets no turn."""
        self.loads_state = kind == "held"
        """Until the end of its first turn after a start, or after its state was divided."""
        self._cold_tasks = 0
        self.slots = place.slots
        """In force; those of its place are what it was started with."""
        self.above: tuple[StageBase, ...] = ()
        self._row_bytes: float | None = None
        """Of what it makes, as far as its turns have told."""
        settings = LineSettings(
            place.name,
            place.tenant or place.pipeline,
            place.latency_seconds,
            place.share,
            event_time,
            sources,
            stateful=kind == "held",
        )
        self.consumers = consumers or {}
        """Of its queues, by name; none where Spark reads the source itself."""
        self.line = StageLine(settings, self.consumers, place.dispatcher.context_policy, self._arrived)
        self.line.restore(journal.entry.progress, self.now)
        # Before anything is taken: what waits from before the start is taken in as it stands.
        self.line.look(self.now)
        self.books = Books(place.name, place.pipeline, kind, place.started_at, self._occupied)

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def _occupied(self) -> int:
        """The slots that a turn occupies: no more than there are."""
        return min(self.slots, max(self.place.dispatcher.slots, 1))

    def _arrived(self, queue: str, segment: Segment) -> None:
        self.place.meters.arrived(self.name, queue, segment)

    def go_by(self, slots: int) -> None:
        """From the next turn on."""
        self.slots = slots
        self.books.slots = self._occupied
        self.place.profiles.rescale(self.name, self._occupied)
        self.place.meters.slots_changed(self.name)

    @property
    def rows_waiting(self) -> int:
        """In its queues."""
        return sum(each.rows_waiting for each in self.consumers.values())

    def count(self, now: float) -> int:
        """Enters the rows that wait in its queues into the books; how many they are."""
        rows = self.rows_waiting
        # A source whose rows wait is not silent: the watermark must not be raised past them.
        self.line.look(now)
        self.books.waiting(rows, now, sum(each.rows_offered for each in self.consumers.values()))
        return rows

    @property
    def read_up(self) -> bool:
        """Whether it has committed all there is to read, as far as its queues do not tell that."""
        return True

    @property
    def sources_away(self) -> Collection[str]:
        """The queues it reads whose broker is not there now."""
        return ()

    @property
    def end_is_away(self) -> bool:
        """Whether it writes to a process elsewhere that is not there now."""
        return False

    @property
    def now(self) -> float:
        return self.place.dispatcher.clock()

    def aim(self, latency_seconds: float | None) -> None:
        """Its rows are wanted within another time from now on."""
        self.place = replace(self.place, latency_seconds=latency_seconds)
        self.line.aim(latency_seconds)

    def show_again(self) -> None:
        """At recovery: what the last turn wrote becomes visible, if a crash came before it did."""
        for output in self.journal.entry.outputs:
            end = self._end_of(output)
            shown_here = end is None or (end.shows is not None and end.shows in output)
            if shown_here and not _lies_elsewhere(end, output):
                self.show(output)
            elif os.path.exists(output.get("from", "")):
                raise PenstockError(
                    f"the sink at stage {self.name!r} must be the one it was, as a crash came before "
                    "the rows of its last turn were shown: start once with the old sink, then with the new"
                )

    def _end_of(self, output: Output) -> End | None:
        return self.destination.dead if output.get("dead") else self.destination.end

    def show(self, output: Output) -> None:
        end = self._end_of(output)
        if end is not None:
            end.show(output)

    def check(self, alive: frozenset[str]) -> None:
        """Notices a query that is not among those alive; most stages have none."""

    def fail(self, error: BaseException) -> None:
        """The turn has failed: its pipeline stops, and its slots are free whatever happens."""
        self.books.abandoned(self.now)
        try:
            self.place.failed(self, error)
        finally:
            self.place.dispatcher.finished(cast("Schedulable", self))

    @property
    def may_run(self) -> bool:
        """Whether it is not paused or changing, and there is room for what a turn would write."""
        return not self.paused and not self.changing and self.has_room

    @property
    def has_room(self) -> bool:
        """Whether what a turn would write fits into the queue behind it."""
        end = self.destination.end
        return not (isinstance(end, QueueEnd) and end.is_full)

    def tell_of_late(self, rows: int) -> None:
        """Counts late rows that cannot be kept, and says so once."""
        if self.books.late_rows == 0:
            log.warning("stage %r drops rows that come after its watermark: %d now", self.name, rows)
        self.books.late_rows += rows

    def result(self, rows: Rows, dating: Dating, context: Mapping[str, Any] | None = None) -> Result:
        """The result of a turn, small or large by what the stage usually makes of its rows."""
        expected = max(dating.took.rows, 1) * max(self.books.selectivity, 0.01)
        small = is_small(expected, self._row_bytes, on_cluster=self.place.on_cluster)
        return Result(rows, small, self.place.folder / "scratch", dating, context)

    def write(self, result: Result, batch: int) -> Written:
        """Runs the action and keeps its rows, the dead letters apart; nobody sees them yet."""
        try:
            return self._written(result, batch)
        finally:
            self._learn_size(result)

    def _learn_size(self, result: Result) -> None:
        """A few rows, or a sample of many, may be smaller than others: they never lower what is known."""
        if result.row_size is not None:
            known = 0.0 if result.row_size.is_sure else self._row_bytes or 0.0
            self._row_bytes = max(result.row_size.bytes, known)

    def _written(self, result: Result, batch: int) -> Written:
        if not self.destination.splits:
            return self.destination.end.write(result, batch)
        if self.destination.dead is None:
            raise PenstockError(f"stage {self.name!r} has dead letters and no queue for them")
        with result.split() as (good, dead):
            written = self.destination.end.write(good, batch)
            buried = self.destination.dead.write(dead, batch)
        return self.with_dead(written, buried)

    def with_dead(self, written: Written, buried: Written) -> Written:
        """Both together: a turn commits its dead letters with its rows."""
        self.books.dead_rows += buried.rows
        marked = tuple({**output, "dead": True} for output in buried.outputs)
        return Written(written.rows, (*written.outputs, *marked))

    def reveal(self, written: Written, took: TurnInput, batch: int) -> float:
        """Shows what a committed turn wrote; when that was."""
        self.place.meters.passed(self.name, took, batch, written.rows, self.now)
        for output in written.outputs:
            self.show(output)
        return self.now

    def account(self, outcome: Outcome, arrivals: Arrivals) -> None:
        """Counts a turn in the books and tells whoever listens."""
        record = self.books.ended(outcome)
        self.place.meters.ended(record)
        # A function that takes the whole DataFrame does not tell how many rows it wrote: its input counts.
        uncounted = isinstance(self.destination.end, FrameEnd)
        rows = outcome.rows_in if uncounted else outcome.rows_out
        loads_state, self.loads_state = self.loads_state, False
        self.place.profiles.learn(record, rows, loads_state=loads_state, cold=self._was_cold())
        reply = self.line.reply(self.place.profiles.of(self.name))
        for stage in self.above:
            stage.line.replied(self.name, reply)
        if self.destination.is_sink and rows:
            self.books.arrived_at_sink(arrivals.scaled(rows), outcome.visible_at)
        for listener in tuple(self.place.listeners):
            try:
                listener(record)
            except Exception:
                log.exception("a listener to turn records failed and is detached")
                with contextlib.suppress(ValueError):
                    self.place.listeners.remove(listener)

    def _was_cold(self) -> bool:
        """Whether a task of the last turn loaded code on an executor that was new to the stage."""
        before, self._cold_tasks = self._cold_tasks, self.place.cold_tasks(self.name)
        return self._cold_tasks > before

    def expected_start(self, now: float) -> Start | None:
        """By when its next window will have to be worked on."""
        return self.line.expected_start(self.place.profiles.of(self.name), now)

    def base_view(
        self,
        rows: int,
        ready_since: float,
        oldest_arrival: float,
        flush: bool = False,
        frontier: Frontier | None = None,
        flush_since: float | None = None,
    ) -> StageView:
        profile = self.place.profiles.of(self.name)
        grain = self.place.dispatcher.grain_seconds
        waiting = Waiting(rows, oldest_arrival, flush_since, frontier)
        self.line.look(self.now, self.place.dispatcher.context_policy)
        return StageView(
            name=self.place.name,
            pipeline=self.place.pipeline,
            rows_waiting=rows,
            ready_since=ready_since,
            oldest_arrival=oldest_arrival,
            slots=self.slots,
            latency_seconds=self.place.latency_seconds,
            flush=flush,
            depth=self.place.depth,
            seconds_per_row=profile.seconds_per_row if profile else 0.0,
            selectivity=profile.selectivity if profile else 1.0,
            steepness=self.place.profiles.steepness_of(self.name),
            rows_seen=profile.most_rows if profile else 0,
            trusted=profile is not None and profile.trusted,
            planned_rows=self.place.dispatcher.planned.get(self.name),
            exact=self.place.dispatcher.exact,
            block_rows=self.place.block_rows,
            **self.line.figures(waiting, self.now, profile, grain, self.slots),
        )


def set_pool(place: Place) -> None:
    """Spark's own pool for the stage's jobs. Set at each turn: the setting sticks to the thread."""
    place.java_context.setLocalProperty(POOL, place.name)


@contextlib.contextmanager
def own_pool(place: Place) -> Iterator[None]:
    """A thread without a pool, which gets its own back at the end.

    An earlier turn may have left a stage's: what is done here would count as that stage's use.
    """
    before = place.java_context.getLocalProperty(POOL)
    place.java_context.setLocalProperty(POOL, None)
    try:
        yield
    finally:
        place.java_context.setLocalProperty(POOL, before)


def _lies_elsewhere(end: End | None, output: Output) -> bool:
    """Whether rows that are not shown yet lie in another spool than the one of the sink."""
    if not isinstance(end, QueueEnd) or not os.path.exists(output.get("from", "")):
        return False
    return not end.spool.pending_path(output["pending"]).exists()
