"""What simulated turns take: C(n, k) = c0 + c1 n/k, with chance around it where that is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from penstock.measure.profiles import StageProfile
from penstock.simulate.errors import SimulationError

FIRST_BLOCK, BLOCK = 16, 1024
IN_A_ROW = 8
"""Measured turns that are drawn together: what makes a turn slow often makes the next ones slow too."""


@dataclass(frozen=True)
class TurnCost:
    """The length of a turn of n rows on k slots, on average.

    `scv` is the squared coefficient of variation around it, by a gamma distribution: 0 for none, 1 for an
    exponential one.

    >>> TurnCost(0.1, 0.002).mean_seconds(100, slots=2)
    0.2
    """

    fixed_seconds: float
    """c0."""
    row_seconds: float = 0.0
    """c1: slot seconds for a row."""
    scv: float = 0.0
    factors: tuple[float, ...] = field(default=(), repr=False)
    """Of turns that were measured, one after the other: what each took over what is expected of it. Where
    there are any, chance is drawn from them rather than by `scv`."""

    def __post_init__(self) -> None:
        for what in ("fixed_seconds", "row_seconds", "scv"):
            value = getattr(self, what)
            if not 0.0 <= value < inf:
                raise SimulationError(
                    f"{what} of a turn must be 0 or more and finite, got {value}: "
                    "no turn ends before it begins"
                )

    def mean_seconds(self, rows: int, slots: int) -> float:
        return self.fixed_seconds + self.row_seconds * rows / slots

    @classmethod
    def of(cls, profile: StageProfile, slots: int, scv: float = 0.0) -> TurnCost:
        """As a profile has it that was learned from turns on so many slots."""
        return cls(profile.fixed_seconds, profile.row_seconds * slots, scv)


class Chance:
    """Factors of mean 1, by which turns are longer or shorter than on average: drawn in blocks."""

    def __init__(self, scv: float, generator: np.random.Generator, measured: Sequence[float] = ()):
        self._scv = scv
        self._measured = measured
        self._generator = generator
        self._drawn: list[float] = []
        self._block = FIRST_BLOCK

    def factor(self) -> float:
        if self._scv == 0.0:
            return 1.0
        if not self._drawn and self._measured:
            begin, count = int(self._generator.integers(len(self._measured))), len(self._measured)
            # The last is taken first.
            self._drawn = [self._measured[(begin + place) % count] for place in range(IN_A_ROW)][::-1]
        elif not self._drawn:
            shape = 1.0 / self._scv
            self._drawn = self._generator.gamma(shape, self._scv, self._block).tolist()
            # Few at first: there may be thousands of stages with a turn now and then.
            self._block = min(2 * self._block, BLOCK)
        return self._drawn.pop()


def fitted(turns: Iterable[tuple[int, int, float]]) -> TurnCost:
    """The cost of turns that were measured, (rows, slots, seconds) each: least squares, nothing negative.

    >>> cost = fitted([(0, 1, 0.1), (100, 1, 0.3), (100, 2, 0.2), (400, 1, 0.9)])
    >>> round(cost.fixed_seconds, 3), round(cost.row_seconds, 4), round(cost.scv, 4)
    (0.1, 0.002, 0.0)
    """
    listed = list(turns)
    if not listed:
        raise SimulationError("a cost must be learned from at least 1 turn, got none: nothing is known of it")
    sizes = np.array([rows / slots for rows, slots, _ in listed])
    seconds = np.array([taken for _, _, taken in listed])
    spread = float(np.var(sizes))
    slope = float(np.cov(sizes, seconds, bias=True)[0, 1]) / spread if spread > 0.0 else 0.0
    slope = max(slope, 0.0)
    fixed = float(seconds.mean() - slope * sizes.mean())
    if fixed < 0.0:
        fixed, slope = 0.0, float((sizes * seconds).sum() / (sizes * sizes).sum())
    expected = np.maximum(fixed + slope * sizes, 1e-9)
    factors = seconds / expected
    return TurnCost(fixed, slope, float(np.mean((factors - 1.0) ** 2)), tuple(factors.tolist()))
