"""A run to come, like one that was measured: the same spells of slow and quick turns, in another order.

    before: Run = ...                                       # what it cost, and when its turns were slow
    costs = reordered(costs_of(before), Part(60.0, 180.0), Part(60.0, 310.0), seed=1)

What slows turns down (a collection of garbage, a neighbour, two turns in each other's way) slows those of all
stages that run then. Drawn for each stage alone they would be slow one by one, and tails too short.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from penstock.simulate.costs import TurnCost
from penstock.simulate.errors import SimulationError

SPELL_SECONDS = 10.0


class Part(NamedTuple):
    """Of a run, what is measured; before it is its warm-up."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


class Piece(NamedTuple):
    """What came from `begin` until `end` of a measured run comes `later` by so much in the other one."""

    begin: float
    end: float
    later: float


def reordered(costs: Mapping[str, TurnCost], seen: Part, wanted: Part, seed: int) -> dict[str, TurnCost]:
    """The costs of a measured run, whose turns tell their moments, as they would meet another run.

    Its warm-up is that of the measured one, as code is cold in both. After it, all stages are slow and
    quick together as in spells of ten seconds of the measured part, which are drawn.
    """
    if seen.seconds < SPELL_SECONDS:
        raise SimulationError(
            f"a run must be measured for {SPELL_SECONDS:g} s or more to tell how another one goes, got "
            f"{seen.seconds:g} s: there would be no spell to draw"
        )
    chance = np.random.default_rng([seed, len(costs)])
    count = ceil(wanted.seconds / SPELL_SECONDS)
    begins = chance.uniform(seen.begin, seen.end - SPELL_SECONDS, count).tolist()
    pieces = [Piece(-inf, seen.begin, wanted.begin - seen.begin)]
    for place, begin in enumerate(begins):
        at = wanted.begin + place * SPELL_SECONDS
        pieces.append(Piece(begin, begin + SPELL_SECONDS, at - begin))
    return {name: _in_pieces(cost, pieces) for name, cost in costs.items()}


def _in_pieces(cost: TurnCost, pieces: Sequence[Piece]) -> TurnCost:
    moments, factors, closing = list[float](), list[float](), list[bool]()
    for piece in pieces:
        first, last = bisect_left(cost.moments, piece.begin), bisect_left(cost.moments, piece.end)
        moments += [each + piece.later for each in cost.moments[first:last]]
        factors += cost.factors[first:last]
        closing += cost.closing[first:last]
    return replace(cost, factors=tuple(factors), moments=tuple(moments), closing=tuple(closing))
