"""What happened: turn records, figures of each stage, latency of rows. Pure values, no clock."""

from penstock.measure.histogram import HistogramError, LatencyHistogram
from penstock.measure.stage_meter import MeterError, StageFigures, StageMeter
from penstock.measure.turns import NO_TURN_YET, RowTimes, TurnError, TurnRecord, split_times

__all__ = [
    "NO_TURN_YET",
    "HistogramError",
    "LatencyHistogram",
    "MeterError",
    "RowTimes",
    "StageFigures",
    "StageMeter",
    "TurnError",
    "TurnRecord",
    "split_times",
]
