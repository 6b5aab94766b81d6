"""What every stage of the runtime keeps: figures, the time of its last turn, its sink's latencies."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from penstock.measure.histogram import LatencyHistogram
from penstock.measure.stage_meter import StageFigures, StageMeter
from penstock.measure.sums import Snapshot
from penstock.measure.turns import NO_TURN_YET, TurnKind, TurnRecord
from penstock.queues.segment import Arrivals
from penstock.scheduling.decisions import Grant
from penstock.spark.turn_input import TurnInput


@dataclass(frozen=True)
class Outcome:
    """A turn that has ended well."""

    batch: int
    granted: Grant
    took: TurnInput
    rows_in: int
    rows_out: int
    visible_at: float


@dataclass
class Books:
    """Figures of one stage; every method may be called from any thread."""

    stage: str
    pipeline: str
    kind: TurnKind
    started_at: float
    slots: int = 1
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    late_rows: int = 0
    dead_rows: int = 0
    slot_seconds: float = 0.0
    rows_taken: int = 0

    def __post_init__(self) -> None:
        self._meter = StageMeter(self.started_at)
        self._last = self._meter.snapshot(self.started_at)
        self._lock = threading.Lock()
        self._rows_waiting = 0
        self._offered = 0
        self.last_turn_end = NO_TURN_YET
        self.turn_since: float | None = None
        self.selectivity = 1.0

    def waiting(self, rows: int, now: float, offered: int | None = None) -> None:
        """`rows` rows wait now. `offered`, of all that ever came, tells how many are new.

        Where it is not known, more rows than before mean that some arrived.
        """
        with self._lock:
            arrived = max(rows - self._rows_waiting if offered is None else offered - self._offered, 0)
            self._rows_waiting = rows
            self._offered += arrived
            self._meter.queue_changed(rows, now, arrived)

    def began(self, now: float, rows_left: int) -> None:
        with self._lock:
            self._rows_waiting = rows_left
            self.turn_since = now
            self._meter.turn_started(now, self.slots)
            self._meter.queue_changed(rows_left, now)

    def ended(self, outcome: Outcome) -> TurnRecord:
        """Counts a turn; its record."""
        with self._lock:
            times = outcome.took.times(self.last_turn_end, outcome.granted.at, outcome.visible_at)
            record = TurnRecord(
                stage=self.stage,
                pipeline=self.pipeline,
                batch=outcome.batch,
                kind=self.kind,
                slots=outcome.granted.slots,
                granted_at=outcome.granted.at,
                finished_at=outcome.visible_at,
                rows_in=outcome.rows_in,
                rows_out=outcome.rows_out,
                queue_seconds=times.queue_seconds,
                schedule_seconds=times.schedule_seconds,
                compute_seconds=times.compute_seconds,
            )
            self._meter.turn_finished(record)
            self.turn_since = None
            self.slot_seconds += record.turn_seconds * record.slots
            self.rows_taken += record.rows_in
            self.last_turn_end = outcome.visible_at
            if outcome.rows_in:
                fresh = outcome.rows_out / outcome.rows_in
                self.selectivity += 0.3 * (fresh - self.selectivity)
            return record

    def abandoned(self, now: float) -> None:
        with self._lock:
            self.turn_since = None
            self._meter.turn_abandoned(now)

    def gave_back(self, now: float, rows: int) -> None:
        """A turn was broken off, and its rows wait again: they do not arrive a second time."""
        with self._lock:
            self._rows_waiting += rows
            self.turn_since = None
            self._meter.turn_abandoned(now)
            self._meter.queue_changed(self._rows_waiting, now)

    def arrived_at_sink(self, arrivals: Arrivals, visible_at: float) -> None:
        """Latency of each row at the sink, from its arrival at the source."""
        with self._lock:
            self.latency.add_many((max(visible_at - time, 0.0), rows) for time, rows in arrivals.bins)

    @property
    def rows_offered(self) -> int:
        """All rows that ever came."""
        with self._lock:
            return self._offered

    def figures(self, now: float) -> StageFigures:
        with self._lock:
            return self._meter.figures(now)

    def snapshot(self, now: float) -> Snapshot:
        """The sums up to now, for `figures_since`."""
        with self._lock:
            return self._meter.snapshot(now)

    def figures_since(self, earlier: Snapshot, now: float) -> StageFigures:
        with self._lock:
            return self._meter.figures_since(earlier, now)

    def figures_since_last(self, now: float) -> StageFigures:
        """The figures since the last call of this, or since the start."""
        with self._lock:
            figures = self._meter.figures_since(self._last, now)
            self._last = self._meter.snapshot(now)
            return figures
