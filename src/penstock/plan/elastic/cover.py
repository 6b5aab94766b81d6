"""The cheapest nodes that have enough slots: a bounded covering knapsack, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from penstock.plan.elastic.nodes import ElasticError

TIE = 1e-9
"""A set must be cheaper by that to be taken instead of one found before."""


@dataclass(frozen=True)
class Offer:
    """Up to `most` nodes alike."""

    slots: int
    price: float
    most: int


def cheapest_cover(need: int, offers: Sequence[Offer]) -> tuple[int, ...]:
    """How many to take of each offer for at least `need` slots at the least price; earlier ones on a tie.

    >>> cheapest_cover(9, [Offer(1, 1.0, 3), Offer(4, 3.5, 9), Offer(16, 11.0, 9)])
    (1, 2, 0)
    """
    if sum(offer.slots * offer.most for offer in offers) < need:
        raise ElasticError(
            f"offers must have at least {need} slots together, got fewer: nothing could carry the plan"
        )
    best = [0.0] + [inf] * need
    taken: list[tuple[int, int, bytearray]] = []
    for place, count in _pieces(offers, need):
        slots, price = count * offers[place].slots, count * offers[place].price
        marks = bytearray(need + 1)
        # From above, so that each piece is taken once at most.
        for wanted in range(need, 0, -1):
            cost = best[max(wanted - slots, 0)] + price
            if cost < best[wanted] - TIE:
                best[wanted], marks[wanted] = cost, 1
        taken.append((place, count, marks))
    counts, wanted = [0] * len(offers), need
    for place, count, marks in reversed(taken):
        if marks[wanted]:
            counts[place] += count
            wanted = max(wanted - count * offers[place].slots, 0)
    return tuple(counts)


def _pieces(offers: Sequence[Offer], need: int) -> Iterator[tuple[int, int]]:
    """1, 2, 4 and so on, and a rest: every number up to the most of an offer is a sum of some of them."""
    for place, offer in enumerate(offers):
        left, size = min(offer.most, -(-need // offer.slots)), 1
        while left > 0:
            count = min(size, left)
            yield place, count
            left, size = left - count, 2 * size
