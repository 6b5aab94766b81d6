"""What an engine tells about itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from penstock.measure.congestion import Congestion, congestion_of
from penstock.measure.histogram import LatencyHistogram
from penstock.measure.stage_meter import StageFigures
from penstock.stages.stage import first_stages, guarantee_at

if TYPE_CHECKING:
    from penstock.spark.running import RunningPipeline


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
    turn_since: float | None = None
    """When the turn was granted that it is in."""
    slots: int = 1
    """That a turn of it takes."""
    slot_seconds: float = 0.0
    """Slot time that its turns took since the start."""
    has_room: bool = True
    """Whether what a turn would write fits into the queue behind it."""


@dataclass(frozen=True)
class TenantReport:
    """What a tenant got: results at its sinks and how many were in time, and what it took from the pool.

    `latency_seconds` is the least target of its sinks; `p50` and `p99` are over all of them. `rows_in` are
    the rows that its first stages have taken.
    """

    name: str
    latency_seconds: float | None
    share: float | None
    sinks: tuple[SinkReport, ...]
    slot_seconds: float
    rows_in: int

    @cached_property
    def _latency(self) -> LatencyHistogram:
        merged = LatencyHistogram()
        for sink in self.sinks:
            merged.merge(sink.latency)
        return merged

    @property
    def results(self) -> float:
        return sum(sink.latency.count for sink in self.sinks)

    @property
    def in_time(self) -> float:
        """Share of the results within the targets of their sinks; 1.0 without results."""
        good = sum(sink.share_in_time * sink.latency.count for sink in self.sinks)
        return good / self.results if self.results else 1.0

    @property
    def p50(self) -> float:
        return self._latency.quantile(0.5)

    @property
    def p99(self) -> float:
        return self._latency.quantile(0.99)


def tenant_reports(pipelines: Iterable[RunningPipeline]) -> list[TenantReport]:
    """One for each tenant, over all of its pipelines, since they were started."""
    owned: dict[str, list[RunningPipeline]] = {}
    for running in pipelines:
        owned.setdefault(running.pipeline.tenant.name, []).append(running)
    return [_tenant_report(name, each) for name, each in owned.items()]


def _tenant_report(name: str, pipelines: list[RunningPipeline]) -> TenantReport:
    sinks = tuple(sink_reports(pipelines))
    stages = [(stage, first_stages(each.graph)) for each in pipelines for stage in tuple(each.stages)]
    return TenantReport(
        name=name,
        latency_seconds=min((sink.target_seconds for sink in sinks if sink.target_seconds), default=None),
        share=pipelines[0].pipeline.tenant.share,
        sinks=sinks,
        slot_seconds=sum(stage.books.slot_seconds for stage, _ in stages),
        rows_in=sum(stage.books.rows_taken for stage, first in stages if stage.name in first),
    )


def sink_reports(pipelines: Iterable[RunningPipeline]) -> list[SinkReport]:
    """Latency at every sink of the pipelines."""
    reports = []
    for running in pipelines:
        for stage in tuple(running.stages):
            sink = running.graph.stage(stage.name).sink
            if sink is not None:
                promise = guarantee_at(running.graph, running.graph.stage(stage.name))
                target = sink.latency_seconds
                reports.append(SinkReport(running.name, sink.name, promise, target, stage.books.latency))
    return reports


def stage_reports(pipelines: Iterable[RunningPipeline], now: float) -> list[StageReport]:
    """Figures of every stage of the pipelines."""
    return [
        StageReport(
            running.name,
            stage.name,
            stage.books.kind,
            stage.books.figures(now),
            stage.books.late_rows,
            stage.books.dead_rows,
            stage.books.turn_since,
            stage.slots,
            stage.books.slot_seconds,
            stage.has_room,
        )
        for running in pipelines
        for stage in tuple(running.stages)
    ]


def congestion_reports(pipelines: Iterable[RunningPipeline], slots: int, now: float) -> dict[str, Congestion]:
    """How evenly the stages of each pipeline are served, over the last minute."""
    return {
        running.name: congestion_of(
            {stage.name: stage.books.figures(now) for stage in tuple(running.stages)},
            slots,
            first_stages(running.graph),
        )
        for running in pipelines
    }
