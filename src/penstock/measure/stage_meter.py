"""Rates, times and utilisation of one stage over a sliding window, in fixed memory."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import PenstockError
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


@dataclass(slots=True)
class _Bin:
    """Sums over one part of the window."""

    turns: int = 0
    rows_in: int = 0
    rows_out: int = 0
    arrived: float = 0.0
    empty_seconds: float = 0.0
    turn_seconds: float = 0.0
    # Seconds times rows, so that the means are those of a row and not of a turn.
    queue_row_seconds: float = 0.0
    schedule_row_seconds: float = 0.0
    compute_row_seconds: float = 0.0

    def count(self, record: TurnRecord) -> None:
        self.turns += 1
        self.rows_in += record.rows_in
        self.rows_out += record.rows_out
        self.turn_seconds += record.turn_seconds
        self.queue_row_seconds += record.queue_seconds * record.rows_in
        self.schedule_row_seconds += record.schedule_seconds * record.rows_in
        self.compute_row_seconds += record.compute_seconds * record.rows_in


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
        self._bins = [_Bin() for _ in range(bins + 1)]
        self._now = started_at
        self._number = 0  # of the bin that holds `_now`, counted from the start
        self._rows_waiting = 0
        self._running = False
        self._total = _Bin()

    def queue_changed(self, rows: int, at: float, arrived: int = 0) -> None:
        """From `at` on `rows` rows wait; `arrived` of them are new.

        Both are told because they differ: rows taken by a turn, or given back by one that failed,
        change what waits and are no arrivals.
        """
        self._advance(at)
        self._rows_waiting = rows
        self._current.arrived += arrived

    def turn_started(self, at: float) -> None:
        """A turn runs from `at` on."""
        self._advance(at)
        self._running = True

    def turn_finished(self, record: TurnRecord) -> None:
        """The turn ended, at `record.finished_at`."""
        self._advance(record.finished_at)
        self._running = False
        self._current.count(record)
        self._total.count(record)

    def turn_abandoned(self, at: float) -> None:
        """The turn ended without a result, so without a record: it counts as busy time only."""
        self._advance(at)
        self._running = False

    def figures(self, now: float) -> StageFigures:
        """The figures of the window that ends at `now`, which moves the meter's time on."""
        self._advance(now)
        seconds = self._now - max(self._started_at, self._start_of(self._oldest))
        rows_in = sum(part.rows_in for part in self._bins)
        rows_out = sum(part.rows_out for part in self._bins)
        empty_seconds = sum(part.empty_seconds for part in self._bins)
        return StageFigures(
            seconds=seconds,
            turns=sum(part.turns for part in self._bins),
            rows_in=rows_in,
            rows_out=rows_out,
            rows_waiting=self._rows_waiting,
            arrival_rows_per_second=_ratio(sum(part.arrived for part in self._bins), seconds),
            service_rows_per_second=_ratio(rows_in, sum(part.turn_seconds for part in self._bins)),
            queue_seconds=_ratio(sum(part.queue_row_seconds for part in self._bins), rows_in),
            schedule_seconds=_ratio(sum(part.schedule_row_seconds for part in self._bins), rows_in),
            compute_seconds=_ratio(sum(part.compute_row_seconds for part in self._bins), rows_in),
            utilisation=max(1.0 - empty_seconds / seconds, 0.0) if seconds > 0 else 0.0,
            selectivity=_ratio(rows_out, rows_in),
            total_turns=self._total.turns,
            total_rows_in=self._total.rows_in,
            total_rows_out=self._total.rows_out,
        )

    @property
    def _current(self) -> _Bin:
        return self._bins[self._number % len(self._bins)]

    @property
    def _oldest(self) -> int:
        return max(self._number - len(self._bins) + 1, 0)

    def _start_of(self, number: int) -> float:
        return self._started_at + number * self._bin_seconds

    def _advance(self, at: float) -> None:
        """Moves the time on to `at`: empties the bins that fall out, counts empty time in the others."""
        if at <= self._now:
            return
        before, self._number = self._number, int((at - self._started_at) / self._bin_seconds)
        for number in range(max(before + 1, self._oldest), self._number + 1):
            self._bins[number % len(self._bins)] = _Bin()
        if not self._running and self._rows_waiting == 0:
            self._count_empty(range(max(before, self._oldest), self._number + 1), at)
        self._now = at

    def _count_empty(self, numbers: range, until: float) -> None:
        for number in numbers:
            begin = max(self._now, self._start_of(number))
            end = until if number == self._number else self._start_of(number + 1)
            self._bins[number % len(self._bins)].empty_seconds += max(end - begin, 0.0)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
