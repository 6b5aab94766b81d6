"""Stages that are held back though a slot is free: now and then a small turn is tried all the same."""

from __future__ import annotations

from penstock.scheduling.laxity import PROBE_SECONDS


class Probes:
    """When a stage that is held back by what its profile says is due for a turn of few rows.

    A profile is learned from turns: one that is wrong would keep the stage from those that teach better.
    Where small turns change nothing, each comes after twice the time of the one before, as it may make an
    urgent stage late.
    """

    def __init__(self) -> None:
        self._held_since: dict[str, float] = {}
        self._waits: dict[str, float] = {}

    def due(self, name: str, now: float) -> float:
        """When its next one is due; the stage is held back now."""
        return self._held_since.setdefault(name, now) + self._waits.get(name, PROBE_SECONDS)

    def probed(self, name: str) -> None:
        self._held_since.pop(name, None)
        self._waits[name] = 2 * self._waits.get(name, PROBE_SECONDS)

    def forget(self, name: str) -> None:
        """The stage got a turn as any other, or is gone."""
        self._held_since.pop(name, None)
        self._waits.pop(name, None)
