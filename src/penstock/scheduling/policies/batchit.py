"""Full batches by deadline, then the fullest: BatchIT."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.stage_view import StageView

PATIENT_SECONDS = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class BatchIt:
    """Runs, of the stages with a full batch, the one with the earliest deadline; else the fullest.

    BatchIT, section V, Algorithm 3. The deadline is that of the oldest row: its arrival, or the moment its
    window was complete, plus the least target below. A batch that must start now to be in time goes as if
    it were full: a plan for mean rates knows nothing of a lull. A stage whose block is not complete waits.
    Where no plan is known, all that waits is a full batch.

    >>> def view(name, rows, arrival, target, planned):
    ...     return StageView(name, "p", rows, arrival, arrival, latency_seconds=target, planned_rows=planned)
    >>> full, urgent = view("full", 50, 10.0, 5.0, 50), view("urgent", 9, 10.0, 0.5, 9)
    >>> few = view("few", 4, 9.0, 1.0, 8)
    >>> [BatchIt().priority(each, now=10.1) for each in (full, urgent, few)]
    [15.0, 10.5, -0.5]
    """

    def priority(self, stage: StageView, now: float) -> float:
        """Of a full batch its deadline; of another how full it is: they never stand in one line."""
        if not stage.full:
            return -stage.fullness
        since = stage.context.time if stage.context is not None else stage.oldest_arrival
        return since + (stage.latency_seconds or PATIENT_SECONDS)

    def reason(self, stage: StageView) -> str:
        if stage.planned_rows is None:
            return "no plan for it yet, earliest deadline"
        if stage.full:
            return f"batch of {stage.planned_rows:,} full, earliest deadline"
        return f"no batch is full, {stage.fullness:.0%} of {stage.planned_rows:,} is the most"
