"""Slots for stages that depend on each other: from an allocation to a better one, a slot at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations

from penstock.model.network import Network

WORTH = 0.005
"""By what share E[T] must become less for a slot to be moved."""
Slots = Mapping[str, int]


def best_moved(network: Network, slots: Slots) -> dict[str, int]:
    """The allocation of as many slots that no single move betters, nor a move of one that was given last.

    >>> from penstock.model import MMk, NetworkStage
    >>> stages = (NetworkStage("sift", MMk(13.0, 1.75)), NetworkStage("match", MMk(13.0, 1.5)))
    >>> best_moved(Network(stages), {"sift": 8, "match": 13})
    {'sift': 10, 'match': 11}
    """
    now = dict(slots)
    seconds = network.sojourn_seconds(now)
    while True:
        around = [(network.sojourn_seconds(each), place) for place, each in enumerate(moves(network, now))]
        best, place = min(around, default=(seconds, -1))
        if not best < (1.0 - WORTH) * seconds:
            return now
        seconds, now = best, list(moves(network, now))[place]


def moves(network: Network, slots: Slots) -> Iterator[dict[str, int]]:
    """With one slot elsewhere; no stage has fewer than it needs."""
    least = network.least_slots
    for giver, taker in permutations(slots, 2):
        if slots[giver] > least[giver]:
            yield {**slots, giver: slots[giver] - 1, taker: slots[taker] + 1}
