"""The values a queue deals in: what arrived when, a published segment, and a slice granted to a stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Bin = tuple[float, float]
MAX_BINS = 32


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When rows arrived at their source: (epoch seconds, rows), ascending, at most 32 bins.

    >>> Arrivals.at(10.0, 3).merge([Arrivals.at(12.0, 1)]).mean
    10.5
    """

    bins: tuple[Bin, ...] = ()

    @classmethod
    def at(cls, time: float, rows: float) -> Arrivals:
        """All `rows` arrived at one moment."""
        return cls(((float(time), float(rows)),) if rows > 0 else ())

    @property
    def oldest(self) -> float:
        return self._ends()[0][0]

    @property
    def newest(self) -> float:
        return self._ends()[-1][0]

    @property
    def rows(self) -> float:
        return sum(rows for _, rows in self.bins)

    @property
    def mean(self) -> float:
        """The mean arrival; merging never changes it."""
        self._ends()
        return sum(time * rows for time, rows in self.bins) / self.rows

    def _ends(self) -> tuple[Bin, ...]:
        if not self.bins:
            raise ValueError("arrivals must hold rows to have a time, got none: nothing arrived")
        return self.bins

    def merge(self, others: Iterable[Arrivals]) -> Arrivals:
        """Weights added; nearest neighbours merge down to 32 bins, the oldest and newest stay exact."""
        weights = dict(self.bins)
        for other in others:
            for time, rows in other.bins:
                weights[time] = weights.get(time, 0.0) + rows
        return Arrivals(_thin(sorted(weights.items())))

    def scaled(self, rows: float) -> Arrivals:
        """The same spread over time for `rows` rows: what a slice or a filter keeps, as far as is known."""
        total = self.rows
        if rows <= 0 or total <= 0:
            return Arrivals()
        if rows == total:
            return self
        return Arrivals(tuple((time, weight * rows / total) for time, weight in self.bins))

    def to_json(self) -> list[list[float]]:
        return [[time, rows] for time, rows in self.bins]

    @classmethod
    def from_json(cls, bins: Iterable[Iterable[float]]) -> Arrivals:
        return cls(tuple((float(time), float(rows)) for time, rows in bins))


def _thin(bins: list[Bin]) -> tuple[Bin, ...]:
    while len(bins) > MAX_BINS:
        bins = _merge_pairs(bins, _nearest_pairs(bins, len(bins) - MAX_BINS))
    return tuple(bins)


def _nearest_pairs(bins: list[Bin], most: int) -> set[int]:
    """Left ends of disjoint neighbours, the closest first, without the first and last bin.

    Only the nearer half is taken in one round, so that merged bins can be compared again.
    """
    gaps = [right[0] - left[0] for left, right in pairwise(bins)]
    inner = sorted(range(1, len(bins) - 2), key=gaps.__getitem__)
    chosen: set[int] = set()
    for left in inner[: len(inner) // 2]:
        if len(chosen) == most:
            break
        if left - 1 not in chosen and left + 1 not in chosen:
            chosen.add(left)
    return chosen


def _merge_pairs(bins: list[Bin], lefts: set[int]) -> list[Bin]:
    merged = []
    for index, (time, rows) in enumerate(bins):
        if index in lefts:
            next_time, next_rows = bins[index + 1]
            share = next_rows / (rows + next_rows)
            merged.append((time + (next_time - time) * share, rows + next_rows))
        elif index - 1 not in lefts:
            merged.append((time, rows))
    return merged


EventRanges = Mapping[str, tuple[float, float]]
Context = Mapping[str, Any]
"""What a stage sends along with its rows, as JSON can hold it; of it the queue knows `SOURCES` only."""
SOURCES = "sources"


@dataclass(frozen=True)
class Segment:
    """An immutable, published part of a queue. `files` are relative to the queue's directory."""

    sequence: int
    producer: str
    batch: int
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: int
    arrivals: Arrivals
    published: float
    event_ranges: EventRanges = field(default_factory=dict)
    context: Context = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(self.sizes)

    @property
    def together(self) -> Mapping[str, EventRanges] | None:
        """The event times of each source, where several came together; None where the producer is the one."""
        told = self.context.get(SOURCES)
        if told is None:
            return None
        return {
            source: {column: (low, high) for column, (low, high) in ranges.items()}
            for source, ranges in told.items()
        }


@dataclass(frozen=True)
class Slice:
    """`rows` rows of a segment from row `start` on, and the absolute paths that hold just those.

    Of slices that were gathered, the first names the file that holds the rows of all.
    """

    segment: Segment
    start: int
    rows: int
    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    arrivals: Arrivals
    event_ranges: EventRanges = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + self.rows

    @property
    def bytes(self) -> int:
        return sum(self.sizes)
