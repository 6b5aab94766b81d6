"""Rates, times and utilisation of one stage over a sliding window, in fixed memory."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.measure.sums import Snapshot, Sums
from penstock.measure.turns import TurnRecord


class MeterError(PenstockError):
    """A meter that could not measure anything."""


@dataclass(frozen=True, slots=True)
class StageFigures:
    """What a meter saw in the last `seconds` seconds.

    A figure with nothing to go by is 0.0: rates and means before the first turn, selectivity
    before the first row. `turns` and `rows_in` tell it from a measured zero.
    """

    seconds: float
    """Length of the window that was in fact seen; shorter than asked for just after the start."""
    turns: int
    rows_in: int
    rows_out: int
    rows_waiting: int
    """Now."""
    arrival_rows_per_second: float
    service_rows_per_second: float
    """Rows taken per second of turn, from grant to end; flush turns take time and no rows."""
    slot_seconds: float
    """Slot time its turns occupied: seconds times slots."""
    service_rows_per_slot_second: float
    """Rows taken per second of turn and slot."""
    queue_seconds: float
    """Mean T_Q of a row; the next two are T_S and T_C."""
    schedule_seconds: float
    compute_seconds: float
    utilisation: float
    """1 - T_emptyQ / T_w: the share of time in which a row waited or a turn ran."""
    selectivity: float
    """Rows out per row in."""
    total_turns: int
    """Since the start, like the next two."""
    total_rows_in: int
    total_rows_out: int


class StageMeter:
    """Follows one stage by its events and gives its figures over the last `window_seconds`.

    Events come in order of time; one that comes late counts as happening at the last time known.
    The window moves in `bins` steps, so it is up to one bin longer than asked for. A turn counts
    where it ends. Not safe for threads: the caller locks.
    """

    def __init__(self, started_at: float, window_seconds: float = 60.0, bins: int = 60) -> None:
        if not window_seconds > 0 or bins < 1:
            raise MeterError(
                "a meter must have a positive window and at least 1 bin, "
                f"got {window_seconds} s in {bins} bins: no rate could be told"
            )
        self._started_at = started_at
        self._bin_seconds = window_seconds / bins
        self._marks = [Sums() for _ in range(bins + 1)]  # the total as each bin of the window began
        self._now = started_at
        self._number = 0  # of the bin that holds `_now`, counted from the start
        self._rows_waiting = 0
        self._slots = 0  # that a turn occupies now
        self._total = Sums()

    def queue_changed(self, rows: int, at: float, arrived: int = 0) -> None:
        """From `at` on `rows` rows wait; `arrived` of them are new.

        Both are told because they differ: rows taken by a turn, or given back by one that failed,
        change what waits and are no arrivals.
        """
        self._advance(at)
        self._rows_waiting = rows
        self._total.arrived += arrived

    def turn_started(self, at: float, slots: int = 1) -> None:
        """A turn runs from `at` on."""
        self._advance(at)
        self._slots = slots

    def turn_finished(self, record: TurnRecord) -> None:
        """The turn ended, at `record.finished_at`."""
        self._advance(record.finished_at)
        self._slots = 0
        self._total.count(record)

    def turn_abandoned(self, at: float) -> None:
        """The turn ended without a result, so without a record: it counts as busy time only."""
        self._advance(at)
        self._slots = 0

    def figures(self, now: float) -> StageFigures:
        """The figures of the window that ends at `now`, which moves the meter's time on."""
        self._advance(now)
        begin = max(self._started_at, self._start_of(self._oldest))
        earlier = self._marks[self._oldest % len(self._marks)]
        return self._figures(self._total.minus(earlier), self._now - begin)

    def snapshot(self, now: float) -> Snapshot:
        """The sums up to `now`, for `figures_since`."""
        self._advance(now)
        return Snapshot(self._now, self._total.copy())

    def figures_since(self, earlier: Snapshot, now: float) -> StageFigures:
        """The figures of the time from a snapshot to `now`."""
        self._advance(now)
        return self._figures(self._total.minus(earlier.sums), self._now - earlier.at)

    def _figures(self, sums: Sums, seconds: float) -> StageFigures:
        return StageFigures(
            seconds=seconds,
            turns=sums.turns,
            rows_in=sums.rows_in,
            rows_out=sums.rows_out,
            rows_waiting=self._rows_waiting,
            arrival_rows_per_second=_ratio(sums.arrived, seconds),
            service_rows_per_second=_ratio(sums.rows_in, sums.turn_seconds),
            slot_seconds=sums.slot_seconds,
            service_rows_per_slot_second=_ratio(sums.rows_in, sums.turn_slot_seconds),
            queue_seconds=_ratio(sums.queue_row_seconds, sums.rows_in),
            schedule_seconds=_ratio(sums.schedule_row_seconds, sums.rows_in),
            compute_seconds=_ratio(sums.compute_row_seconds, sums.rows_in),
            utilisation=max(1.0 - sums.empty_seconds / seconds, 0.0) if seconds > 0 else 0.0,
            selectivity=_ratio(sums.rows_out, sums.rows_in),
            total_turns=self._total.turns,
            total_rows_in=self._total.rows_in,
            total_rows_out=self._total.rows_out,
        )

    @property
    def _oldest(self) -> int:
        return max(self._number - len(self._marks) + 1, 0)

    def _start_of(self, number: int) -> float:
        return self._started_at + number * self._bin_seconds

    def _advance(self, at: float) -> None:
        """Moves the time on to `at`, and marks the total wherever a bin begins on the way."""
        if at <= self._now:
            return
        before, self._number = self._number, int((at - self._started_at) / self._bin_seconds)
        for number in range(max(before + 1, self._oldest), self._number + 1):
            self._pass_time_until(self._start_of(number))
            self._marks[number % len(self._marks)] = self._total.copy()
        self._pass_time_until(at)

    def _pass_time_until(self, at: float) -> None:
        """Time in a turn counts as slot time, time without a row as empty."""
        seconds = max(at - self._now, 0.0)
        if self._slots:
            self._total.slot_seconds += seconds * self._slots
        elif self._rows_waiting == 0:
            self._total.empty_seconds += seconds
        self._now += seconds


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
