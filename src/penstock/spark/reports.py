"""What an engine tells about itself."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.measure.histogram import LatencyHistogram
from penstock.measure.stage_meter import StageFigures


@dataclass(frozen=True)
class SinkReport:
    """Latency of the rows at one sink, from their arrival at the source."""

    pipeline: str
    sink: str
    guarantee: str
    target_seconds: float | None
    latency: LatencyHistogram

    @property
    def share_in_time(self) -> float:
        """Rows within the target, 1.0 where there is none."""
        return 1.0 if self.target_seconds is None else self.latency.share_within(self.target_seconds)


@dataclass(frozen=True)
class StageReport:
    """Figures of one stage over the last minute, and its dead letters since the start."""

    pipeline: str
    stage: str
    kind: str
    figures: StageFigures
    late_rows: int
    dead_rows: int
