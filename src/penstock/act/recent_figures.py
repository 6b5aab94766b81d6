"""Figures of stages over the managers' period, whatever span their own meters look back over."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from penstock.measure.stage_meter import StageFigures
from penstock.measure.sums import Snapshot


class Meter(Protocol):
    """What counts the events of a stage."""

    def snapshot(self, now: float) -> Snapshot: ...

    def figures_since(self, earlier: Snapshot, now: float) -> StageFigures: ...


class RecentFigures:
    """Rates of a minute ago are wrong for managers that look every few seconds, and slow to tell a growth."""

    def __init__(self, window_seconds: float):
        self._window_seconds = window_seconds
        self._marks: dict[str, deque[Snapshot]] = {}
        self._meters: dict[str, Meter] = {}

    def of(self, stage: str, meter: Meter, now: float) -> StageFigures:
        """Since the last look that was a whole window ago; since the first, if there was none."""
        marks = self._marks.setdefault(stage, deque())
        if self._meters.get(stage) is not meter or (marks and now < marks[-1].at):
            # The stage was started anew, or the clock was set back.
            marks.clear()
        self._meters[stage] = meter
        marks.append(meter.snapshot(now))
        while len(marks) > 2 and marks[1].at <= now - self._window_seconds + 1e-6:
            marks.popleft()
        return meter.figures_since(marks[0], now)
