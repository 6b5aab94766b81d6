"""What happened: turn records, figures of each stage, latency of rows. Pure values, no clock."""

from penstock.measure.chain import steepness
from penstock.measure.congestion import Congestion, StageCongestion, congestion_of
from penstock.measure.histogram import HistogramError, LatencyHistogram
from penstock.measure.profiles import ProfileError, Profiler, StageProfile
from penstock.measure.stage_meter import MeterError, StageFigures, StageMeter
from penstock.measure.turns import NO_TURN_YET, RowTimes, TurnError, TurnRecord, split_times

__all__ = [
    "NO_TURN_YET",
    "Congestion",
    "HistogramError",
    "LatencyHistogram",
    "MeterError",
    "ProfileError",
    "Profiler",
    "RowTimes",
    "StageCongestion",
    "StageFigures",
    "StageMeter",
    "StageProfile",
    "TurnError",
    "TurnRecord",
    "congestion_of",
    "split_times",
    "steepness",
]
