"""The steepest reduction of waiting rows first."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from penstock.scheduling.stage_view import StageView


@dataclass(frozen=True, slots=True)
class MinMemory:
    """Runs the stage from which on rows vanish fastest: most rows gone per second of work.

    Chain scheduling of Babcock et al. (SIGMOD 2003), the Min-Memory scheduler of EdgeWise (USENIX
    ATC 2019, section 3.4). `StageView.steepness` is the slope of the lower envelope of a stage's
    progress chart (`measure.chain`); a stage that makes more rows of few has one under 0, and goes last. A
    stage whose steepness is not known yet goes before those with one, so that it is learned.

    >>> def priority(steepness):
    ...     stage = StageView("s", "p", 10, ready_since=10.0, oldest_arrival=10.0, steepness=steepness)
    ...     return MinMemory().priority(stage, now=11.0)
    >>> priority(4.5), priority(0.2), priority(-5.0), priority(None)
    (-4.5, -0.2, 5.0, -inf)
    """

    def priority(self, stage: StageView, now: float) -> float:
        return -inf if stage.steepness is None else -stage.steepness

    def reason(self, stage: StageView) -> str:
        if stage.steepness is None:
            return "its reduction is not known yet"
        rows = abs(stage.steepness)
        slope = f"{rows:.3g}" if rows < 100.0 else f"{rows:,.0f}"
        if stage.steepness < 0.0:
            return f"least growth, {slope} rows more per second of work"
        return f"steepest reduction, {slope} rows gone per second of work"
