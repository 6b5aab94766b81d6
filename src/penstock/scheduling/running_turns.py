"""The turns that run: the slots that each occupies, and when it is expected to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from penstock.scheduling.laxity import SAFETY, Cut, turn_seconds
from penstock.scheduling.stage_view import StageView

OVERDUE = 0.5
"""Of the time that a turn has taken, what it is expected to take still when it should have ended."""


@dataclass(slots=True)
class CutCount:
    """Turns that were cut for another stage, and those of them that took longer than was predicted."""

    made: int = 0
    overran: int = 0


@dataclass(slots=True)
class _Turn:
    view: StageView
    at: float
    must_end_by: float
    """inf, unless it was cut for another stage."""
    ends_at: float = -inf

    def free_at(self, now: float) -> float:
        """When its slots are free. One that should have ended goes on for half as long as it has run."""
        return self.ends_at if self.ends_at > now else now + OVERDUE * (now - self.at)


class RunningTurns:
    """By stage: one of a stage at most. Not safe for threads."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        self._slots: dict[str, int] = {}
        self._ended: dict[str, float] = {}
        self.used = 0
        """Slots that they occupy."""
        self.cuts = CutCount()

    def __contains__(self, stage: str) -> bool:
        return stage in self._slots

    def __bool__(self) -> bool:
        return bool(self._slots)

    @property
    def slots(self) -> Mapping[str, int]:
        """What each stage occupies: a live, read-only view."""
        return MappingProxyType(self._slots)

    def begin(self, view: StageView, cut: Cut, slots: int, now: float) -> None:
        self._slots[view.name] = slots
        self.used += slots
        self._turns[view.name] = _Turn(view, now, cut.end_by)
        self.took(view.name, cut.rows)
        self.cuts.made += cut.end_by < inf

    def took(self, stage: str, rows: int) -> None:
        """The turn has other rows than were granted: when it ends is expected anew."""
        turn = self._turns[stage]
        turn.ends_at = turn.at + SAFETY * turn_seconds(turn.view, rows)

    def end(self, stage: str, now: float) -> None:
        """Well or badly: its slots are free."""
        self.used -= self._slots.pop(stage)
        self.cuts.overran += now > self._turns.pop(stage).must_end_by
        self._ended[stage] = now

    def ended_at(self, stage: str) -> float:
        """When the last turn of a stage ended; -inf before the first."""
        return self._ended.get(stage, -inf)

    def forget(self, stage: str) -> None:
        """It has had no turn so far."""
        self._ended.pop(stage, None)

    def free_at(self, now: float) -> list[float]:
        """When each of the slots that they occupy is expected to be free."""
        return [turn.free_at(now) for name, turn in self._turns.items() for _ in range(self._slots[name])]
