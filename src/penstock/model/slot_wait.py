"""How long the turns of a shared pool wait for a slot: as long as that very wait leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log, log1p

import numpy as np

from penstock.model.bulk import BulkService

HALVINGS = 45


def slot_waits(stages: Sequence[BulkService], slots: int, cycle_seconds: float) -> list[float]:
    """For each stage the wait of its turns, with the others as they are at the wait that they agree on.

    The longer the wait, the more are there to be waited for, but no longer than a whole cycle: in between it
    is found by halving.
    """
    if slots >= len(stages):
        return [0.0] * len(stages)
    # In a cycle in which every stage has its turn, a stage waits for what its own turn leaves of it.
    most = [max(cycle_seconds * (1.0 - each.busy_slots) - each.fixed_seconds, 0.0) for each in stages]
    low, high = 0.0, cycle_seconds
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _Crowd.at(stages, most, middle).mean_wait(slots) > middle else (low, middle)
        )
    crowd = _Crowd.at(stages, most, high)
    return [crowd.wait_of(place, slots) for place in range(len(stages))]


@dataclass(frozen=True)
class _Crowd:
    """The stages of a pool at a certain wait."""

    most: Sequence[float]
    """What each waits in a full rotation."""
    turns: tuple[float, ...]
    presences: tuple[float, ...]
    """The share of the time in which each waits for a slot or has one."""
    presence: float
    """Sum of them."""
    work: float
    """Sum of presence times turn."""

    @classmethod
    def at(cls, stages: Sequence[BulkService], most: Sequence[float], wait_seconds: float) -> _Crowd:
        pairs = [stage.turn(1, min(wait_seconds, each)) for stage, each in zip(stages, most, strict=True)]
        turns, presences = tuple(turn for turn, _ in pairs), tuple(1.0 - idle for _, idle in pairs)
        work = sum(turn * share for turn, share in zip(turns, presences, strict=True))
        return cls(most, turns, presences, sum(presences), work)

    def mean_wait(self, slots: int) -> float:
        """Of a turn, if all stages were alike."""
        count = len(self.turns)
        turn = self.work / self.presence if self.presence > 0.0 else 0.0
        return self._wait(self.presence / count, turn, slots, sum(self.most) / count)

    def wait_of(self, place: int, slots: int) -> float:
        """Of the turns of one stage, behind those of all others."""
        presence = self.presence - self.presences[place]
        if presence <= 0.0:
            return 0.0
        turn = (self.work - self.presences[place] * self.turns[place]) / presence
        wait = self._wait(presence / (len(self.turns) - 1), turn, slots, self.most[place])
        return min(wait, self.most[place])

    def _wait(self, presence: float, turn_seconds: float, slots: int, rotation: float) -> float:
        """Where all others are present, the rotation tells it better than their mean turn does."""
        others = len(self.turns) - 1
        all_there = min(presence, 1.0) ** others
        by_mean = turn_seconds * (others - slots + 1) / slots
        wait = wait_behind(others, presence, turn_seconds, slots) + all_there * (rotation - by_mean)
        return max(wait, 0.0)


def wait_behind(others: int, presence: float, turn_seconds: float, slots: int) -> float:
    """The mean wait where each of `others` stages is present for that share of the time.

    With n >= k others present, n - k turns are ahead, k at a time. Before them one of the k that run has to
    end: by chance that is 1/(k + 1) of a turn away, in a full rotation 1/k.

    >>> wait_behind(others=7, presence=1.0, turn_seconds=1.0, slots=2)  # rotation: (8 - 2)/2 turns
    3.0
    """
    if slots > others or presence <= 0.0:
        return 0.0
    below, below_rows = _fewer_than(slots, others, presence) if presence < 1.0 else (0.0, 0.0)
    full = max(1.0 - below, 0.0)
    present = max(others * presence - below_rows, 0.0)
    ahead = max(present - slots * full, 0.0)
    in_step = min(present / others, full)
    return turn_seconds * (ahead / slots + in_step / slots + (full - in_step) / (slots + 1))


def _fewer_than(slots: int, others: int, presence: float) -> tuple[float, float]:
    """The chance that fewer than so many are present, and how many these are on average, times that chance.

    The terms of the binomial distribution, by logarithms, as the first may be tiny.
    """
    odds = log(presence) - log1p(-presence)
    numbers = np.arange(slots)
    chances = np.exp(others * log1p(-presence) + numbers * odds + _log_choices(others, slots))
    return float(chances.sum()), float(chances @ numbers)


@lru_cache(maxsize=8)
def _log_choices(others: int, slots: int) -> np.ndarray:
    """log of (others choose n), for n below `slots`: the same for every stage of a pool."""
    numbers = np.arange(1, slots)
    return np.concatenate(([0.0], np.cumsum(np.log((others - numbers + 1) / numbers))))
