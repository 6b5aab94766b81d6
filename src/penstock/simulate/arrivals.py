"""How rows come to a source: settings, and the times and numbers that follow from them, in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import floor, inf
from typing import Protocol, Self

import numpy as np

from penstock.simulate.errors import SimulationError

BLOCK = 4096
Block = tuple[Sequence[float], Sequence[float]]
"""Times, ascending, and the rows that come at each."""


class Arrivals(Protocol):
    """Rows over time."""

    @property
    def rows_per_second(self) -> float:
        """On average."""
        ...

    def blocks(self, chance: np.random.Generator, begin: float, end: float) -> Iterator[Block]:
        """What comes after `begin` and up to `end`."""
        ...

    def scaled(self, factor: float) -> Self:
        """The same with `factor` times the rows."""
        ...


@dataclass(frozen=True)
class Ticks:
    """Every tick one segment with its part of the rate; the first at `phase_seconds` and one tick."""

    rows_per_second: float
    tick_seconds: float = 0.1
    phase_seconds: float = 0.0

    def __post_init__(self) -> None:
        _check_rate(self.rows_per_second)

    @property
    def period_seconds(self) -> float:
        """A tick, or longer where that would have no row."""
        return max(self.tick_seconds, 1.0 / self.rows_per_second)

    def blocks(self, chance: np.random.Generator, begin: float, end: float) -> Iterator[Block]:
        for times, numbers in _ticks(self.period_seconds, self.phase_seconds, begin, end):
            each = self.rows_per_second * self.period_seconds
            edges = np.round(np.append(numbers - 1, numbers[-1]) * each)
            yield times.tolist(), np.diff(edges).tolist()

    def scaled(self, factor: float) -> Self:
        return replace(self, rows_per_second=factor * self.rows_per_second)


@dataclass(frozen=True)
class Renewal:
    """Single rows, with gaps of a gamma distribution: scv 1 is Poisson, 0 is even."""

    rows_per_second: float
    scv: float = 1.0

    def __post_init__(self) -> None:
        _check_rate(self.rows_per_second)

    def blocks(self, chance: np.random.Generator, begin: float, end: float) -> Iterator[Block]:
        gap, time = 1.0 / self.rows_per_second, begin
        while time < end:
            # Not more than will be asked for: there may be thousands of slow sources.
            size = min(BLOCK, int(1.1 * (end - time) / gap) + 16)
            if self.scv > 0.0:
                gaps = chance.gamma(1.0 / self.scv, self.scv * gap, size)
            else:
                gaps = np.full(size, gap)
            times = time + np.cumsum(gaps)
            time = float(times[-1])
            kept = times[: np.searchsorted(times, end, side="right")]
            yield kept.tolist(), [1.0] * len(kept)

    def scaled(self, factor: float) -> Self:
        return replace(self, rows_per_second=factor * self.rows_per_second)


@dataclass(frozen=True)
class Bursts:
    """Every tick one segment whose rows are drawn from a Pareto distribution; the mean is the rate.

    A volume is at most 1,000 times the least one: the mean of an alpha near 1 would hang on one draw.
    """

    rows_per_second: float
    tick_seconds: float = 1.0
    alpha: float = 1.5
    phase_seconds: float = 0.0

    def __post_init__(self) -> None:
        _check_rate(self.rows_per_second)
        if not self.alpha > 1.0:
            raise SimulationError(
                f"alpha of bursts must be over 1, got {self.alpha}: they would have no mean"
            )

    def blocks(self, chance: np.random.Generator, begin: float, end: float) -> Iterator[Block]:
        mean = _bounded_mean(self.alpha, 1000.0)
        for times, _ in _ticks(self.tick_seconds, self.phase_seconds, begin, end):
            drawn = np.minimum(1.0 + chance.pareto(self.alpha, len(times)), 1000.0) / mean
            rows = np.maximum(np.round(drawn * self.rows_per_second * self.tick_seconds), 1.0)
            yield times.tolist(), rows.tolist()

    def scaled(self, factor: float) -> Self:
        return replace(self, rows_per_second=factor * self.rows_per_second)


@dataclass(frozen=True)
class Trace:
    """What came when, as it was recorded; scaled, it has other numbers of rows at the same times."""

    times: tuple[float, ...]
    rows: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.times) != len(self.rows) or any(one > other for one, other in pairwise(self.times)):
            raise SimulationError(
                "a trace must have times in order and rows for each, got others: nothing could be replayed"
            )

    @property
    def rows_per_second(self) -> float:
        seconds = self.times[-1] if self.times else 0.0
        return sum(self.rows) / seconds if seconds > 0.0 else 0.0

    def blocks(self, chance: np.random.Generator, begin: float, end: float) -> Iterator[Block]:
        first, last = np.searchsorted(self.times, (begin, end), side="right")
        yield self.times[first:last], self.rows[first:last]

    def scaled(self, factor: float) -> Self:
        edges = np.round(np.cumsum(self.rows) * factor)
        return replace(self, rows=tuple(np.maximum(np.diff(edges, prepend=0.0), 1.0).tolist()))


@dataclass(frozen=True)
class Steps:
    """Other arrivals at rates that change: from each time on, so many times their rate."""

    arrivals: Ticks | Renewal | Bursts
    factors: tuple[tuple[float, float], ...]
    """(from when on, factor), by time; before the first the rate is as it is."""

    @property
    def rows_per_second(self) -> float:
        return self.arrivals.rows_per_second

    def blocks(self, chance: np.random.Generator, begin: float, end: float) -> Iterator[Block]:
        pieces = [(begin, 1.0), *((at, factor) for at, factor in self.factors if at < end), (end, 0.0)]
        for (start, factor), (stop, _) in pairwise(pieces):
            if factor > 0.0 and stop > start:
                yield from self.arrivals.scaled(factor).blocks(chance, max(start, begin), stop)

    def scaled(self, factor: float) -> Self:
        return replace(self, arrivals=self.arrivals.scaled(factor))


def _ticks(period: float, phase: float, begin: float, end: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Times and numbers of the ticks after `begin` up to `end`, counted from 1 at the phase."""
    number = max(floor((begin - phase) / period + 1e-9) + 1, 1)
    last = floor((end - phase) / period + 1e-9)
    while number <= last:
        numbers = np.arange(number, min(number + BLOCK, last + 1))
        yield phase + numbers * period, numbers
        number += BLOCK


def _bounded_mean(alpha: float, most: float) -> float:
    """Of a Pareto distribution from 1 on, of which all above `most` counts as that."""
    return (alpha - float(most ** (1.0 - alpha))) / (alpha - 1.0)


def _check_rate(rows_per_second: float) -> None:
    if not 0.0 < rows_per_second < inf:
        raise SimulationError(
            f"an arrival rate must be positive and finite, got {rows_per_second}: no row would come"
        )
