"""What an engine tells of its pipelines, tenants, stages and slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.measure.changes import Change
from penstock.measure.congestion import Congestion
from penstock.measure.profiles import StageProfile
from penstock.measure.slot_figures import SlotFigures
from penstock.plan.model_choice import Choice
from penstock.scheduling.decisions import Decision
from penstock.scheduling.policies import Policy
from penstock.scheduling.running_turns import CutCount
from penstock.spark.cluster.pool import ClusterPool
from penstock.spark.dispatcher import Dispatcher
from penstock.spark.reports import (
    SinkReport,
    StageReport,
    TenantReport,
    congestion_reports,
    sink_reports,
    stage_reports,
    tenant_reports,
)
from penstock.spark.running import RunningPipeline
from penstock.spark.slot_control import SlotControl
from penstock.spark.surroundings import PipelineState, Surroundings
from penstock.stages.stage import StageGraph

if TYPE_CHECKING:
    import pyarrow as pa


class EngineReports:
    """The part of an engine that changes nothing."""

    _around: Surroundings
    _dispatcher: Dispatcher
    _pipelines: dict[str, RunningPipeline]
    _slot_control: SlotControl
    pool: ClusterPool | None

    @property
    def pool_slots(self) -> int:
        """The slots that there are now."""
        return self._dispatcher.slots

    @property
    def pool_nodes(self) -> int | None:
        """The nodes of the cluster that are in view; None where there is no cluster."""
        return None if self.pool is None else self.pool.nodes

    @property
    def away(self) -> frozenset[str]:
        """Sources, sinks and topics between stages whose broker is not there now, as "pipeline.name"."""
        return frozenset().union(*(running.away for running in self._all))

    @property
    def _all(self) -> tuple[RunningPipeline, ...]:
        return tuple(self._pipelines.values())

    def _running(self, name: str) -> RunningPipeline:
        if name not in self._pipelines:
            raise PenstockError(f"no pipeline {name!r} runs here, of {sorted(self._pipelines)}")
        return self._pipelines[name]

    @property
    def pipelines(self) -> dict[str, PipelineState]:
        """The state of each pipeline, by name."""
        return {name: running.state for name, running in self._pipelines.items()}

    @property
    def graphs(self) -> dict[str, StageGraph]:
        """The stages and queues of each pipeline, with their targets as they are now."""
        return {name: running.graph for name, running in self._pipelines.items()}

    @property
    def in_line(self) -> frozenset[str]:
        """The stages that wait for a turn or have one, as the scheduler knows them."""
        return self._dispatcher.in_line

    @property
    def policy(self) -> Policy:
        """By which turns are granted now."""
        return self._dispatcher.policy

    def tenant_of(self, name: str) -> str:
        """Whose pipeline it is."""
        return self._running(name).pipeline.tenant.name

    def error(self, name: str) -> BaseException | None:
        """Why a pipeline failed."""
        return self._running(name).error

    def dead_letters(self, name: str) -> pa.Table:
        """A pipeline's bad and late rows so far: `dead_letter` (the reason) and `raw`."""
        return self._running(name).dead_letters()

    def sinks(self) -> list[SinkReport]:
        """Latency at every sink since it was started."""
        return sink_reports(self._all)

    def tenants(self) -> list[TenantReport]:
        """What each tenant got since its pipelines were started."""
        return tenant_reports(self._all)

    @property
    def cuts(self) -> CutCount:
        """Turns that were cut short for another stage, and how many of them took longer than predicted."""
        return self._dispatcher.cuts

    def stages(self) -> list[StageReport]:
        """Figures of every stage."""
        return stage_reports(self._all, self._dispatcher.clock())

    def profile(self, stage: str) -> StageProfile | None:
        """What turns of a stage were learned to cost; None before the first."""
        return self._around.profiles.of(stage)

    def congestion(self) -> dict[str, Congestion]:
        """How evenly each pipeline's stages are served, and the highest rate it could hold, by pipeline."""
        return congestion_reports(self._all, self._dispatcher.slots, self._dispatcher.clock())

    @property
    def scheduler_seconds(self) -> float:
        """Time spent in scheduling since the start: looking at stages and deciding."""
        return self._dispatcher.scheduler_seconds

    @property
    def scheduler_cpu_seconds(self) -> float:
        """The part of it in which a core worked; in the rest others had the cores."""
        return self._dispatcher.scheduler_cpu_seconds

    @property
    def slots(self) -> dict[str, int]:
        """The slots of every stage: the tasks of its turns."""
        return {stage.name: stage.slots for running in self._all for stage in tuple(running.stages)}

    def slot_figures(self) -> dict[str, SlotFigures]:
        """What was measured of each pipeline for models of slots, as of its last interval that ended."""
        found = {running.name: running.meters.figures for running in self._all}
        return {name: figures for name, figures in found.items() if figures is not None}

    def slot_models(self, name: str) -> dict[str, Choice]:
        """The model that stands for each stage of a pipeline whose slots are controlled, and why."""
        return self._slot_control.choices(self._running(name).name)

    def changes(self, since: float = 0.0) -> tuple[Change, ...]:
        """What was changed after a time, each with its reason: slots, plans, policy, targets, states."""
        return self._around.changes.since(since)

    def decisions(self, stage: str | None = None, n: int = 100) -> tuple[Decision, ...]:
        """The last grants and holds, with their reasons."""
        return self._dispatcher.recent(stage, n)
