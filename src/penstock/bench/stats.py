"""Medians and spreads of repeated runs, and taking turns between two sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

Runner = Callable[[], Sequence[float]]
"""Runs one block and gives what each of its runs took."""


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all values do not exceed, interpolated.

    >>> quantile([4.0, 1.0, 3.0, 2.0], 0.5)
    2.5
    """
    if not values:
        return float("nan")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclass(frozen=True)
class Summary:
    """One figure: its value, the range its runs lay in, and how many runs there were."""

    value: float
    low: float
    high: float
    runs: int


def summary(values: Sequence[float], low: float = 0.1, high: float = 0.9) -> Summary:
    """Median and p10 to p90.

    >>> summary([1.0, 2.0, 3.0, 4.0, 5.0], 0, 1)
    Summary(value=3.0, low=1.0, high=5.0, runs=5)
    """
    return Summary(quantile(values, 0.5), quantile(values, low), quantile(values, high), len(values))


def single(value: float) -> Summary:
    """A figure that was measured once."""
    return Summary(value, value, value, 1)


@dataclass(frozen=True)
class Rounds:
    """The blocks of two sides, pairwise in the order they ran."""

    a: Sequence[Sequence[float]]
    b: Sequence[Sequence[float]]

    @property
    def all_a(self) -> list[float]:
        return [each for block in self.a for each in block]

    @property
    def all_b(self) -> list[float]:
        return [each for block in self.b for each in block]

    def ratio(self) -> Summary:
        """Median of all runs of A over that of all runs of B; its range is that of the rounds.

        >>> Rounds([[6.0, 6.0], [8.0, 8.0]], [[2.0, 2.0], [2.0, 2.0]]).ratio()
        Summary(value=3.5, low=3.0, high=4.0, runs=2)
        """
        each = [median(a) / median(b) for a, b in zip(self.a, self.b, strict=True)]
        return Summary(median(self.all_a) / median(self.all_b), min(each), max(each), len(each))

    def difference(self) -> Summary:
        """Median of all runs of A less that of all runs of B; its range is that of the rounds."""
        each = [median(a) - median(b) for a, b in zip(self.a, self.b, strict=True)]
        return Summary(median(self.all_a) - median(self.all_b), min(each), max(each), len(each))


def alternating(run_a: Runner, run_b: Runner, rounds: int) -> Rounds:
    """A block of A, then one of B, in the next round the other way about: a drift meets both alike."""
    blocks: tuple[list[Sequence[float]], list[Sequence[float]]] = ([], [])
    for number in range(rounds):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        for side in order:
            blocks[side].append((run_a, run_b)[side]())
    return Rounds(*blocks)
