"""What passes between the turns of a real run: until a free slot is granted, until rows are seen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import NamedTuple


class SeenTurn(NamedTuple):
    """A turn of one slot, by when it was granted and when its result was visible."""

    stage: str
    granted_at: float
    ended_at: float


@dataclass(frozen=True)
class Delays:
    """Seconds that a simulation would leave out, as it takes no time to see and to decide."""

    look: float = 0.0
    """From when rows come, while a slot is free, to the grant for them."""
    free: float = 0.0
    """From the end of a turn, while rows wait, to the grant of its slot: it is taken for so much longer."""
    shown: float = 0.0
    """By how much a result is at the sink before its turn ends."""


def delays_of(turns: Iterable[SeenTurn], came: Mapping[str, Sequence[float]], begin: float = -inf) -> Delays:
    """The medians of what was seen of turns granted from `begin` on; `came`: when rows came, by stage.

    A turn is granted when something has happened that lets it: rows came to its stage, or a turn ended. What
    passed since the last such thing is the delay. (Some are granted as a hold of the policy has run out;
    where those are the fewer, the medians do not mind.)

    >>> turns = [SeenTurn("a", 0.01, 1.0), SeenTurn("b", 1.003, 2.0)]
    >>> found = delays_of(turns, {"a": [0.0], "b": [0.5]})
    >>> round(found.look, 3), round(found.free, 3)
    (0.01, 0.003)
    """
    listed = list(turns)
    ends = sorted(turn.ended_at for turn in listed)
    looks, frees = list[float](), list[float]()
    for turn in listed:
        if turn.granted_at < begin:
            continue
        row = _last_until(came.get(turn.stage, ()), turn.granted_at)
        end = _last_until(ends, turn.granted_at)
        if max(row, end) > -inf:
            (looks if row > end else frees).append(turn.granted_at - max(row, end))
    return Delays(median(looks) if looks else 0.0, median(frees) if frees else 0.0)


def shown_before(turns: Iterable[SeenTurn], results: Mapping[str, Sequence[float]]) -> float:
    """By how much results were at the sink before their turns ended, the median; `results`: when, by stage.

    >>> shown_before([SeenTurn("a", 0.0, 1.0), SeenTurn("a", 1.5, 2.0)], {"a": [0.99, 1.97]})
    0.02
    """
    apart = []
    for turn in turns:
        at = _first_after(results.get(turn.stage, ()), turn.granted_at)
        if at <= turn.ended_at:
            apart.append(turn.ended_at - at)
    return round(median(apart), 6) if apart else 0.0


def _last_until(times: Sequence[float], end: float) -> float:
    place = bisect_right(times, end)
    return times[place - 1] if place else -inf


def _first_after(times: Sequence[float], begin: float) -> float:
    place = bisect_right(times, begin)
    return times[place] if place < len(times) else inf
