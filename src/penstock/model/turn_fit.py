"""From turns that were measured to what they cost: c0, c1 and s of rows that are dealt to tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import NamedTuple

from penstock.model.dealt_cost import DealtCost, slowest_moments

SPREADS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""The squared coefficients of variation that are tried."""
PRIOR = 0.5
"""For each turn, so much weighs what one without rows is taken to cost,"""
UNKNOWN = 0.01
"""and so much where that is not known yet."""
LEAST_TURNS = 8
SHORTEST = 20
FIXED_SPREAD = 0.2
"""Of c0, by which turns alike differ at least."""
LEAST_SPREAD = 0.003
"""Seconds."""
CLEARLY = 2.0
"""By what rows made must explain turns better than rows taken, in the logarithm of how likely they are."""


class MeasuredTurn(NamedTuple):
    """What is kept of a turn."""

    rows_in: int
    rows_out: int
    slots: int
    seconds: float


@dataclass(frozen=True)
class _Fit:
    cost: DealtCost
    likely: float
    """The logarithm of how likely the turns are, but for a constant."""


def fitted_together(turns: Mapping[str, Sequence[MeasuredTurn]]) -> dict[str, DealtCost] | None:
    """The costs of stages that run side by side; None while there are too few turns of one.

    What a turn costs without rows is much the same for all of them, and is seen best where rows cost least.
    """
    first = {name: fitted(each) for name, each in turns.items()}
    known = [cost for cost in first.values() if cost is not None]
    if len(known) < len(first) or not known:
        return None
    cheapest = min(known, key=lambda cost: cost.fixed_seconds + cost.row_seconds)
    found = {name: fitted(each, cheapest.fixed_seconds) for name, each in turns.items()}
    return {name: cost for name, cost in found.items() if cost is not None}


def fitted(turns: Sequence[MeasuredTurn], usual_fixed_seconds: float | None = None) -> DealtCost | None:
    """The cost under which turns are likeliest; None while there are too few.

    Turns are taken to be normal around c0 + c1 times the slowest task. For each s, c0 and c1 follow by least
    squares, with some turns without rows that took `usual_fixed_seconds`: turns of about one size say nothing
    of c0. No c0 is longer than the shortest turns. It is tried by the rows taken and by the rows made.
    """
    return _fitted(tuple(turns), usual_fixed_seconds) if len(turns) >= LEAST_TURNS else None


@lru_cache(maxsize=256)
def _fitted(turns: tuple[MeasuredTurn, ...], usual_fixed_seconds: float | None) -> DealtCost:
    """Kept, as more than one model is made of the same turns."""
    shortest = _shortest([each.seconds for each in turns])
    usual = (
        (shortest, UNKNOWN) if usual_fixed_seconds is None else (min(usual_fixed_seconds, shortest), PRIOR)
    )
    by_rows = max((_fit(turns, scv, False, usual) for scv in SPREADS), key=lambda fit: fit.likely)
    if all(each.rows_out >= each.rows_in for each in turns) or not any(each.rows_out for each in turns):
        return by_rows.cost
    by_made = max((_fit(turns, scv, True, usual) for scv in SPREADS), key=lambda fit: fit.likely)
    return by_made.cost if by_made.likely > by_rows.likely + CLEARLY else by_rows.cost


def _fit(turns: Sequence[MeasuredTurn], scv: float, by_made: bool, usual: tuple[float, float]) -> _Fit:
    moments = [slowest_moments(each.rows_out if by_made else each.rows_in, each.slots, scv) for each in turns]
    means = [mean for mean, _ in moments]
    fixed, row = _line(means, [each.seconds for each in turns], usual)
    noise = (LEAST_SPREAD + FIXED_SPREAD * fixed) ** 2
    likely = 0.0
    for each, (mean, variance) in zip(turns, moments, strict=True):
        spread = row * row * variance + noise
        likely -= 0.5 * ((each.seconds - fixed - row * mean) ** 2 / spread + log(spread))
    return _Fit(DealtCost(fixed, row, scv if row > 0.0 else 0.0, by_made), likely)


def _line(
    sizes: Sequence[float], seconds: Sequence[float], usual: tuple[float, float]
) -> tuple[float, float]:
    """c0 and c1 by least squares, neither negative, c0 at most that of the shortest turns."""
    without, weighs = usual
    prior = weighs * len(sizes)
    weight = len(sizes) + prior
    size, mean = sum(sizes) / weight, (sum(seconds) + prior * without) / weight
    squares = sum(each * each for each in sizes) / weight - size * size
    both = sum(one * other for one, other in zip(sizes, seconds, strict=True)) / weight - size * mean
    row = max(both / squares, 0.0) if squares > 0.0 else 0.0
    fixed = min(max(mean - row * size, 0.0), _shortest(seconds))
    whole = sum(sizes)
    return fixed, max((sum(seconds) - fixed * len(sizes)) / whole, 0.0) if whole > 0.0 else 0.0


def _shortest(seconds: Sequence[float]) -> float:
    """One in so many may have been shorter than any other is."""
    return sorted(seconds)[len(seconds) // SHORTEST]
