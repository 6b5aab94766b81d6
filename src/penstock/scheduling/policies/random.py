"""Any stage, by chance."""

from __future__ import annotations

import random
from dataclasses import dataclass

from penstock.scheduling.stage_view import StageView


@dataclass(frozen=True, slots=True)
class Random:
    """Runs any of the stages that wait, each with the same chance.

    The random scheduler on a fixed pool of EdgeWise (USENIX ATC 2019, section 7.1): what the pool
    alone brings, without a wise order. All that wait draw before every decision (`scheduling.redraw`); a draw
    depends on the seed, the stage and the time only, so that runs repeat.

    >>> stage = StageView("parse", "p", rows_waiting=10, ready_since=10.0, oldest_arrival=10.0)
    >>> round(Random().priority(stage, now=11.0), 3), round(Random(seed=1).priority(stage, now=11.0), 3)
    (0.776, 0.936)
    """

    seed: int = 0

    def priority(self, stage: StageView, now: float) -> float:
        return random.Random(f"{self.seed}|{stage.name}|{now}").random()

    def reason(self, stage: StageView) -> str:
        return "drawn by lot"
