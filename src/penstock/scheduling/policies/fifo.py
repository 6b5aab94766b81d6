"""First come, first served."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.stage_view import StageView


@dataclass(frozen=True, slots=True)
class Fifo:
    """Runs the stage that has waited longest; no stage starves.

    The baseline that the papers compare with. A stage that is ready again at the end of its turn
    goes to the end of the line, however old its rows are.

    >>> early = StageView("early", "p", rows_waiting=1, ready_since=10.0, oldest_arrival=10.0)
    >>> late = StageView("late", "p", rows_waiting=900, ready_since=10.5, oldest_arrival=3.0)
    >>> Fifo().priority(early, now=11.0) < Fifo().priority(late, now=11.0)
    True
    """

    def priority(self, stage: StageView, now: float) -> float:
        return stage.ready_since

    def reason(self, stage: StageView) -> str:
        return "waited longest"
