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
    progress chart (`measure.chain`). A stage whose steepness is not known yet goes before those with
    one, so that it is learned.

    >>> def priority(steepness):
    ...     stage = StageView("s", "p", 10, ready_since=10.0, oldest_arrival=10.0, steepness=steepness)
    ...     return MinMemory().priority(stage, now=11.0)
    >>> priority(4.5), priority(0.2)
    (-4.5, -0.2)
    """

    def priority(self, stage: StageView, now: float) -> float:
        return -stage.steepness if stage.steepness > 0.0 else -inf

    def reason(self, stage: StageView) -> str:
        if stage.steepness > 0.0:
            slope = f"{stage.steepness:.3g}" if stage.steepness < 100.0 else f"{stage.steepness:,.0f}"
            return f"steepest reduction, {slope} rows gone per second of work"
        return "its reduction is not known yet"
