"""What simulated turns take: C(n, k) = c0 + c1 n/k, with chance around it where that is wanted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
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
    after_seconds: float = 0.0
    """For so long the slots of a turn are taken after it is over, whatever it took."""
    factors: tuple[float, ...] = field(default=(), repr=False)
    """Of turns that were measured, one after the other: what each took over what is expected of it. Where
    there are any, chance is drawn from them rather than by `scv`."""
    moments: tuple[float, ...] = field(default=(), repr=False)
    """When these turns were granted, by the clock of the simulation. Where that is told, the factor of a turn
    is that of the measured one next to it in time: what made the turns of all stages slow at a moment does so
    again, to all of them together. Before the first and after the last it is drawn."""
    closing: tuple[bool, ...] = field(default=(), repr=False)
    """Which of these turns had results of windows, where that is known: they may take longer than others of
    as many rows, and a turn meets one of its own kind."""

    def __post_init__(self) -> None:
        for what in ("fixed_seconds", "row_seconds", "scv", "after_seconds"):
            value = getattr(self, what)
            if not 0.0 <= value < inf:
                raise SimulationError(
                    f"{what} of a turn must be 0 or more and finite, got {value}: "
                    "no turn ends before it begins"
                )
        if self.moments and len(self.moments) != len(self.factors):
            raise SimulationError(
                f"every factor of a turn must have its moment, got {len(self.factors)} factors and "
                f"{len(self.moments)} moments: none could be met again"
            )
        if self.closing and len(self.closing) != len(self.factors):
            raise SimulationError(
                f"of every factor it must be known whether its turn closed windows, got {len(self.factors)} "
                f"factors and {len(self.closing)} that are known: nobody could tell which is which"
            )

    def mean_seconds(self, rows: int, slots: int) -> float:
        return self.fixed_seconds + self.row_seconds * rows / slots

    def after(self, seconds: float) -> TurnCost:
        """The same with slots that are taken for so long after a turn."""
        return replace(self, after_seconds=seconds)

    def meeting(
        self, turns: Iterable[tuple[float, int, int, float]], results: Sequence[float] = ()
    ) -> TurnCost:
        """The same, whose chance is that of these turns at their moments: (granted at, rows, slots, seconds).

        They may be others than it was learned from, such as those of a warm-up too. `results` tell, in order,
        when results of windows came: turns during which one did are met by turns that close windows.
        """
        listed = sorted(turns)
        return replace(
            self,
            factors=tuple(
                taken / max(self.mean_seconds(rows, slots), 1e-9) for _, rows, slots, taken in listed
            ),
            moments=tuple(granted for granted, *_ in listed),
            closing=tuple(
                _any_within(results, granted, granted + taken) for granted, *_, taken in listed if results
            ),
        )

    def since(self, begin: float) -> TurnCost:
        """The same by a clock that is at 0 when that of its moments is at `begin`."""
        return replace(self, moments=tuple(each - begin for each in self.moments))

    @classmethod
    def of(cls, profile: StageProfile, scv: float = 0.0) -> TurnCost:
        """As a profile has it, by the slots of the turns that it was learned from."""
        return cls(profile.fixed_seconds, profile.row_seconds * profile.slots, scv)


class Chance:
    """Factors of mean 1, by which turns are longer or shorter than on average: met again or drawn.

    Turns that close windows meet others that did, and so do those that do not, where that is known.
    """

    def __init__(self, cost: TurnCost, generator: np.random.Generator):
        every = _Measured(cost, generator)
        kinds = {closes: _Measured(cost, generator, closes) for closes in (False, True)}
        self._of_kind = {closes: kind if kind.factors else every for closes, kind in kinds.items()}
        self._drawn_by_scv = _Drawn(cost.scv, generator)
        self._scv = cost.scv

    def factor(self, now: float, *, closes: bool = False) -> float:
        """Of a turn that is granted now; `closes`: it completes windows."""
        if self._scv == 0.0:
            return 1.0
        measured = self._of_kind[closes]
        return measured.factor(now) if measured.factors else self._drawn_by_scv.factor()


class _Measured:
    """Of measured turns, all or those of one kind."""

    def __init__(self, cost: TurnCost, generator: np.random.Generator, closes: bool | None = None):
        chosen = [
            place
            for place in range(len(cost.factors))
            if closes is None or (cost.closing and cost.closing[place] == closes)
        ]
        self.factors = [cost.factors[place] for place in chosen]
        self._moments = [cost.moments[place] for place in chosen] if cost.moments else []
        self._generator = generator
        self._drawn: list[float] = []

    def factor(self, now: float) -> float:
        if self._moments and self._moments[0] <= now <= self._moments[-1]:
            return self.factors[_nearest(self._moments, now)]
        if not self._drawn:
            begin, count = int(self._generator.integers(len(self.factors))), len(self.factors)
            # The last is taken first.
            self._drawn = [self.factors[(begin + place) % count] for place in range(IN_A_ROW)][::-1]
        return self._drawn.pop()


class _Drawn:
    """By a gamma distribution of mean 1."""

    def __init__(self, scv: float, generator: np.random.Generator):
        self._scv = scv
        self._generator = generator
        self._drawn: list[float] = []
        self._block = FIRST_BLOCK

    def factor(self) -> float:
        if not self._drawn:
            shape = 1.0 / self._scv
            self._drawn = self._generator.gamma(shape, self._scv, self._block).tolist()
            # Few at first: there may be thousands of stages with a turn now and then.
            self._block = min(2 * self._block, BLOCK)
        return self._drawn.pop()


def _nearest(moments: Sequence[float], now: float) -> int:
    place = bisect_left(moments, now)
    return place - 1 if place and now - moments[place - 1] < moments[place] - now else place


def _any_within(times: Sequence[float], begin: float, end: float) -> bool:
    place = bisect_right(times, begin)
    return place < len(times) and times[place] <= end


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
    scv = float(np.mean((factors - 1.0) ** 2))
    return TurnCost(fixed, slope, scv, factors=tuple(factors.tolist()))
