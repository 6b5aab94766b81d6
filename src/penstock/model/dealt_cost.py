"""What a turn takes whose rows are dealt to its tasks one by one: c0, and the slowest of the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt
from statistics import NormalDist
from typing import NamedTuple

from penstock.model.stage_model import check_number

NORMAL = NormalDist()


@lru_cache(maxsize=4096)
def greatest_normal(count: int) -> tuple[float, float]:
    """Mean and variance of the greatest of so many draws from a normal distribution, within 2%.

    The mean is Blom's; the variance is fitted to tables.

    >>> [round(each, 2) for each in greatest_normal(10)]
    [1.55, 0.35]
    """
    mean = NORMAL.inv_cdf((count - 0.375) / (count + 0.25))
    return mean, 1.0 / (1.0 + log(count) * (0.62 + 0.075 * log(count)))


class Slowest(NamedTuple):
    """The longest of some sums of service times of mean 1: `rows` times the third power of a root.

    Third roots of gamma's draws are nearly normal (Wilson and Hilferty), and so is the greatest of some.
    """

    rows: float
    root: float
    spread: float
    """Standard deviation of the root."""

    @property
    def mean(self) -> float:
        return max(self.rows * self.root * (self.root**2 + 3.0 * self.spread**2), self.rows)

    @property
    def variance(self) -> float:
        return (3.0 * self.rows * self.root**2 * self.spread) ** 2

    def drawn(self, normal: float) -> float:
        """What a draw from the standard normal distribution leads to."""
        return self.rows * max(self.root + self.spread * normal, 0.0) ** 3


def slowest_sum(tasks: int, rows_each: float, scv: float) -> Slowest:
    """Of `tasks` sums of so many service times.

    >>> [round(slowest_sum(n, 1.0, 1.0).mean, 2) for n in (1, 2, 10)]  # harmonic numbers: 1, 1.5, 2.93
    [1.0, 1.53, 2.94]
    """
    if scv == 0.0:
        return Slowest(rows_each, 1.0, 0.0)
    spread = sqrt(scv / rows_each) / 3.0
    mean, variance = greatest_normal(tasks) if tasks > 1 else (0.0, 1.0)
    return Slowest(rows_each, 1.0 - spread**2 + spread * mean, spread * sqrt(variance))


@lru_cache(maxsize=1 << 16)
def slowest_task(rows: int, slots: int, scv: float) -> Slowest:
    """Of a turn of so many rows, at least one, dealt to the tasks in rotation."""
    most = ceil(rows / slots)
    if most == 1 or scv == 0.0:
        return slowest_sum(min(rows, slots), most, scv)
    # Some tasks have one row more than the others: by themselves, and as a spread among all of them.
    more, mean = rows - (most - 1) * slots, rows / slots
    uneven = (more / slots) * (1.0 - more / slots) / mean
    return max(
        slowest_sum(more, most, scv), slowest_sum(slots, mean, scv + uneven), key=lambda each: each.mean
    )


@lru_cache(maxsize=1 << 16)
def slowest_moments(rows: int, slots: int, scv: float) -> tuple[float, float]:
    """Mean and variance of that, which models ask for over and over; 0 for a turn without rows."""
    slowest = slowest_task(rows, slots, scv) if rows else Slowest(0.0, 0.0, 0.0)
    return slowest.mean, slowest.variance


@dataclass(frozen=True)
class DealtCost:
    """The cost of a stage's turns.

    >>> cost = DealtCost(fixed_seconds=0.1, row_seconds=0.5)
    >>> [cost.turn_seconds(rows, slots=4) for rows in (0, 1, 4, 5)]
    [0.1, 0.6, 0.6, 1.1]
    """

    fixed_seconds: float
    """c0."""
    row_seconds: float
    """c1: slot seconds for a row."""
    scv: float = 0.0
    """s: of the slot seconds of rows."""
    by_made: bool = False
    """Whether the rows that a turn makes are what costs, as where a stage drops rows before it works."""

    def __post_init__(self) -> None:
        check_number("the fixed cost of a turn", self.fixed_seconds, 0.0, "no turn ends before it begins")
        check_number("the cost of a row", self.row_seconds, 0.0, "no turn ends before it begins")
        check_number(
            "the squared coefficient of variation of service times", self.scv, 0.0, "no spread is less"
        )

    def turn_seconds(self, rows: int, slots: int) -> float:
        """On average; rows are those that cost."""
        return self.fixed_seconds + self.row_seconds * slowest_moments(rows, slots, self.scv)[0]
