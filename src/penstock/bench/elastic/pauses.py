"""What changes of slots cost a stage, and how busy stages are, from the records of their turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

TURNS_AFTER = 2
"""The first turn after a division loads the state; the next one once more where its query was made anew."""
USUAL_TURNS = 10
"""Before and after, whose median is the usual length of a turn."""
Told = Mapping[str, Any]


@dataclass(frozen=True)
class Pause:
    """A division of a stage's state."""

    stopped_seconds: float
    """In which the stage got no turn."""
    until_result_seconds: float
    """With what the turns after it took more than usual."""


def pauses_of(changes: Sequence[Told], turns: Sequence[Told]) -> list[Pause]:
    """Of the changes of slots those that divided state.

    >>> turns = [{"stage": "s", "granted_at": t, "finished_at": t + 0.2} for t in (0, 1, 2, 3, 8, 9, 10)]
    >>> turns[4]["finished_at"] += 1.5
    >>> change = {"way": "restarted", "stage": "s", "at": 5.0, "pause_seconds": 1.0}
    >>> [round(each.until_result_seconds, 3) for each in pauses_of([change, {"way": "next turn"}], turns)]
    [2.5]
    """
    return [_pause(each, turns) for each in changes if each.get("way") == "restarted"]


def _pause(change: Told, turns: Sequence[Told]) -> Pause:
    stopped = float(change["pause_seconds"])
    mine = [each for each in turns if each["stage"] == change["stage"]]
    # The first turn after it may begin before the change is written down; in the pause itself none does.
    began = change["at"] - stopped
    before = [_seconds(each) for each in mine if each["granted_at"] < began]
    after = [_seconds(each) for each in mine if each["granted_at"] >= began]
    usual = [*before[-USUAL_TURNS:], *after[TURNS_AFTER : TURNS_AFTER + USUAL_TURNS]]
    if not usual:
        return Pause(stopped, stopped)
    more = sum(max(each - median(usual), 0.0) for each in after[:TURNS_AFTER])
    return Pause(stopped, stopped + more)


def _seconds(turn: Told) -> float:
    return max(float(turn["finished_at"]) - float(turn["granted_at"]), 0.0)


def peak_use(turns: Sequence[Told], middle: float, seconds: float) -> float:
    """The share of so many seconds around the middle in which the busiest stage had a turn.

    >>> turns = [{"stage": "s", "granted_at": t, "finished_at": t + 0.5} for t in range(20)]
    >>> peak_use(turns, 10.0, 4.0)
    0.5
    """
    begin, end = middle - seconds / 2, middle + seconds / 2
    busy: dict[str, float] = {}
    for each in turns:
        within = min(each["finished_at"], end) - max(each["granted_at"], begin)
        busy[each["stage"]] = busy.get(each["stage"], 0.0) + max(within, 0.0)
    return max(busy.values(), default=0.0) / seconds
