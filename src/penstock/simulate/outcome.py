"""What a simulation led to: latency at the sinks, work of the stages, and how busy the slots were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.measure.histogram import LatencyHistogram
from penstock.simulate.plant import Plant
from penstock.simulate.rows import Rows
from penstock.simulate.station import Station

BLOCK = 8192


class Latencies:
    """Gathers the latency of rows, to be put into a histogram in blocks."""

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._rows: list[float] = []
        self._histogram = LatencyHistogram()

    def add(self, rows: Rows, now: float) -> None:
        """These rows are at the sink."""
        self._seconds += [now - time for time in rows.times]
        self._rows += rows.weights
        if len(self._seconds) >= BLOCK:
            self._empty()

    @property
    def histogram(self) -> LatencyHistogram:
        self._empty()
        return self._histogram

    @property
    def totals(self) -> tuple[float, float]:
        """Rows so far, and the sum of their latencies."""
        histogram = self.histogram
        return histogram.count, histogram.mean * histogram.count

    def _empty(self) -> None:
        if not self._seconds:
            return
        self._histogram.add_block(self._seconds, self._rows)
        self._seconds, self._rows = [], []


@dataclass(frozen=True)
class SinkOutcome:
    """Latency at one sink; `target_seconds` None: none was set."""

    pipeline: str
    sink: str
    target_seconds: float | None
    latency: LatencyHistogram

    @property
    def share_in_time(self) -> float:
        """Of the rows that came; 1 where there is no target."""
        return 1.0 if self.target_seconds is None else self.latency.share_within(self.target_seconds)


@dataclass(frozen=True)
class StageOutcome:
    """What one stage did."""

    stage: str
    turns: int
    rows_in: int
    rows_out: int
    rows_waiting: int
    """At the end."""
    slot_seconds: float
    slots: int
    """Of a turn at the end, or rows at a time."""


@dataclass(frozen=True)
class Outcome:
    """One run. Figures are of the time after the warm-up."""

    seconds: float
    sinks: Mapping[str, SinkOutcome]
    stages: Mapping[str, StageOutcome]
    slots_busy: float
    """Share of the slots' time, 0 to 1."""
    events: int
    """Changes of state, warm-up included: segments that came, grants, ends of turns, deliveries."""
    segments: int
    """Of the events, those that came from outside."""
    turns: int
    backlog_seconds: float
    """Rows that wait at the end, in seconds of what comes from outside."""


def sink_outcomes(plant: Plant, latencies: Mapping[str, Latencies]) -> dict[str, SinkOutcome]:
    """By pipeline and sink."""
    found = {}
    for each in plant.stages:
        if each.sink is not None:
            name = f"{each.pipeline}.{each.sink}"
            latency = latencies[name].histogram
            found[name] = SinkOutcome(each.pipeline, each.sink, each.target_seconds, latency)
    return found


def stage_outcome(station: Station) -> StageOutcome:
    return StageOutcome(
        station.name,
        station.turns,
        station.rows_in,
        station.rows_out,
        station.inbox.rows_waiting,
        station.slot_seconds,
        station.lanes if station.setup.lanes else station.slots,
    )


def backlog_seconds(plant: Plant, stations: Iterable[Station]) -> float:
    """Rows that wait, in seconds of what comes from outside."""
    outside = sum(inflow.arrivals.rows_per_second for inflow in plant.inflows)
    waiting = sum(station.inbox.rows_waiting for station in stations)
    return waiting / outside if outside else 0.0
