"""The rows of one turn as its bookkeeping sees them, whatever source they came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.measure.turns import RowTimes, split_times
from penstock.queues.segment import Arrivals, EventRanges, Segment, Slice


@dataclass(frozen=True)
class Portion:
    """Rows that came together: when at the source, when at this stage, and their event times."""

    rows: int
    arrivals: Arrivals
    came: float
    event_ranges: EventRanges = field(default_factory=dict)
    queue: str = ""
    segment: Segment | None = None
    """The one they are of; None where Spark reads them itself."""
    whole: bool = True
    """Whether nothing is left of the segment."""

    @classmethod
    def of(cls, piece: Slice, queue: str) -> Portion:
        segment = piece.segment
        whole = piece.end == segment.rows
        return cls(piece.rows, piece.arrivals, segment.published, piece.event_ranges, queue, segment, whole)


@dataclass(frozen=True)
class TurnInput:
    """All portions of a turn, in order."""

    portions: tuple[Portion, ...] = ()

    @property
    def rows(self) -> int:
        return sum(portion.rows for portion in self.portions)

    @property
    def arrivals(self) -> Arrivals:
        return Arrivals().merge(portion.arrivals for portion in self.portions)

    def times(self, last_turn_end: float, granted_at: float, visible_at: float) -> RowTimes:
        """Mean T_Q, T_S and T_C over the rows."""
        total = self.rows
        if total == 0:
            return RowTimes(0.0, 0.0, max(visible_at - granted_at, 0.0))
        sums = [0.0, 0.0, 0.0]
        for portion in self.portions:
            for index, seconds in enumerate(split_times(portion.came, last_turn_end, granted_at, visible_at)):
                sums[index] += seconds * portion.rows
        return RowTimes(*(each / total for each in sums))

    def completed(self, window_ends: Iterable[float], column: str, delay_seconds: float) -> Arrivals:
        """For each window end, the arrival of the portion whose event time completed that window.

        Windows that no portion of this turn completed count from the newest arrival: the turn
        before completed them, and this one only flushed.
        """
        steps = self._steps(column)
        arrived = self.arrivals.bins
        newest = arrived[-1][0] if arrived else None
        found = []
        for end in window_ends:
            arrival = next((at for reached, at in steps if reached >= end + delay_seconds), newest)
            if arrival is not None:
                found.append(Arrivals.at(arrival, 1))
        return Arrivals().merge(found)

    def _steps(self, column: str) -> Sequence[tuple[float, float]]:
        """(greatest event time so far, arrival), by arrival."""
        known = [
            (portion.arrivals.oldest, portion.event_ranges[column][1])
            for portion in self.portions
            if column in portion.event_ranges and portion.arrivals.bins
        ]
        steps: list[tuple[float, float]] = []
        for arrival, reached in sorted(known):
            steps.append((max(reached, steps[-1][0]) if steps else reached, arrival))
        return steps
