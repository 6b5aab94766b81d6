"""The longest queue first."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.stage_view import StageView


@dataclass(frozen=True, slots=True)
class LongestQueue:
    """Runs the stage with the most rows waiting.

    The congestion-aware scheduler of EdgeWise (USENIX ATC 2019, section 4.1). It keeps queues even, and
    promises a short one nothing: while longer ones keep coming, its few rows, or its flush, wait on.

    >>> short = StageView("short", "p", rows_waiting=10, ready_since=10.0, oldest_arrival=10.0)
    >>> long = StageView("long", "p", rows_waiting=900, ready_since=10.5, oldest_arrival=10.5)
    >>> LongestQueue().priority(long, now=11.0), LongestQueue().priority(short, now=11.0)
    (-900.0, -10.0)
    """

    def priority(self, stage: StageView, now: float) -> float:
        return -float(stage.rows_waiting)

    def reason(self, stage: StageView) -> str:
        return "longest queue"
