"""Where the managers of replicas and nodes meet the engine: what it is in, what they decide out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from penstock.act import Actuator, ElasticLoop, Nodes, RecentFigures, UseMeter, stage_seen
from penstock.act.loop import LOOK_SECONDS
from penstock.errors import PenstockError
from penstock.plan.elastic import (
    AddNode,
    Decision,
    Elasticity,
    HideNode,
    ManagedPipeline,
    ManagedStage,
    Observation,
    Record,
    Region,
    ReleaseNode,
    ShowNode,
    going_on,
)
from penstock.plan.slot_changes import SlotChange
from penstock.spark.cluster.nodes import AllocatedNodes, StandaloneNodes
from penstock.spark.cluster.pool import ClusterPool, is_local
from penstock.spark.cluster.standalone import StandaloneCluster
from penstock.spark.kept_lines import KeptLines
from penstock.spark.running import RunningPipeline
from penstock.spark.surroundings import Surroundings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock")
RATE_PERIODS = 2.0
"""Of the operator managers, over which rates are taken: rows come from the stage before in lumps."""
Pipelines = Callable[[], Sequence[RunningPipeline]]


class SlotSetter(Protocol):
    """Who changes the slots of stages, and tells when that was done: an engine."""

    def set_slots(self, slots: Mapping[str, int], reason: str = "") -> tuple[SlotChange, ...]: ...


@dataclass(frozen=True)
class ElasticSettings:
    """Who manages replicas and nodes, and of which cluster.

    `managers` has regions, periods and policies. Pipelines that it does not name are managed too, with the
    target of their strictest sink. With `cluster`, the folder of a `penstock cluster`, nodes are its workers;
    with `nodes` they are those of an actuator of one's own; with neither they are executors, which the
    cluster manager allocates. `time="run"` counts all the time of tasks as use, not the JVM's processor time
    alone: for Python operators and emulated service times.
    """

    managers: Elasticity = field(default_factory=lambda: Elasticity((), (Region("default"),)))
    cluster: Path | None = None
    worker_memory: str = "1g"
    nodes: Nodes | None = None
    time: Literal["cpu", "run"] = "cpu"

    def actuator(self, pool: ClusterPool | None) -> Nodes:
        """Where nodes come from and go to."""
        if self.nodes is not None:
            return self.nodes
        assert pool is not None, "checked before the pool was made"
        if self.cluster is not None:
            return StandaloneNodes(StandaloneCluster(self.cluster), pool, self.worker_memory)
        region = self.managers.regions[0]
        return AllocatedNodes(pool, region.smallest.slots, region.name)


def check_elastic(
    settings: ElasticSettings | None, session: SparkSession, region: str | None, slots: object
) -> None:
    """Refuses settings that need a cluster where there is none, or nodes that the session could not use.

    `slots` is whoever else changes slots of stages, if anybody does.
    """
    if settings is None:
        return
    if slots:
        raise PenstockError(
            "slots of stages must be changed by one side, got both elastic and slot_control: "
            "they would undo each other's changes. Leave one out"
        )
    if settings.nodes is not None:
        return
    if is_local(session):
        raise PenstockError(
            "elastic replicas and nodes must be of a cluster, got none: name its master, or leave them out"
        )
    regions = [each.name for each in settings.managers.regions]
    if region is not None and regions != [region]:
        raise PenstockError(
            f"managers must have the engine's region {region!r} and no other, got {', '.join(regions)}: "
            "nodes elsewhere would be started and never used. Give each region an engine of its own"
        )
    if settings.cluster is None:
        cores = session.sparkContext.getConf().get("spark.executor.cores")
        _check_allocated(settings, int(cores) if cores else None)
    elif len(regions) > 1:
        log.warning(
            "the managers have regions %s, and the session runs any stage on any of their workers: "
            "regions are counted in the ledger only",
            ", ".join(regions),
        )


def _check_allocated(settings: ElasticSettings, executor_cores: int | None) -> None:
    """Executors are all alike: what is no such executor would be asked for, and never be seen to come."""
    regions = [region.name for region in settings.managers.regions]
    if len(regions) > 1:
        raise PenstockError(
            f"executors that the cluster manager allocates must be of 1 region, got "
            f"{', '.join(regions)}: give each region an engine of its own"
        )
    slots = settings.managers.regions[0].smallest.slots
    if executor_cores is not None and slots != executor_cores:
        raise PenstockError(
            f"nodes of region {regions[0]!r} must have as many slots as executors have cores, "
            f"{executor_cores} (spark.executor.cores), got {slots}: no node that is awaited "
            "would ever come"
        )


class Elastic:
    """Lets the managers look when they are due, acts on what they decide, and keeps it."""

    def __init__(
        self,
        settings: ElasticSettings,
        nodes: Nodes,
        around: Surroundings,
        stages: SlotSetter,
        pipelines: Pipelines,
    ):
        self._around = around
        self._pipelines = pipelines
        self._nodes = nodes
        self._recent = RecentFigures(RATE_PERIODS * settings.managers.periods.operator_seconds)
        self._meter = UseMeter(settings.managers.periods.operator_seconds, settings.time)
        self._stages = _Noted(stages)
        self._actuator = Actuator(nodes, self._stages)
        self._journal = KeptLines(around.folder, "elastic")
        self.loop = ElasticLoop(
            settings.managers,
            self._observe,
            self._actuator,
            self._keep,
            going_on(self._journal.read(), settings.managers.periods.retry_seconds),
        )
        self._named = {each.name: each for each in settings.managers.pipelines}
        self._managed: dict[str, ManagedPipeline] = dict(self._named)
        self._begun = self._closed = False

    def _keep(self, record: Record) -> None:
        """Writes a look down, and tells of nodes that come and go; slots are told of where they change."""
        self._journal.add([record.to_json()])
        for subject, became, reason in node_changes(record.decisions):
            self._around.changes.tell("nodes", subject, became, reason)

    def follow(self) -> None:
        """Goes on by itself until it is closed; failing at a look stops nothing."""
        if self._closed:
            return
        dispatcher = self._around.dispatcher
        try:
            # Before there is a pipeline all nodes are without use: they are there for the one that comes.
            if self._manage_what_runs():
                self.loop.look(dispatcher.clock())
            again = self.loop.next_look(dispatcher.clock())
        except Exception as error:
            log.warning("the managers of replicas and nodes failed and look again: %s", error)
            again = dispatcher.clock() + LOOK_SECONDS
        dispatcher.at(again, self.follow)

    def check(self, running: RunningPipeline) -> None:
        """Refuses a pipeline that `managers` name with other stages than it has."""
        if (named := self._named.get(running.name)) is None:
            return
        wanted, there = [each.name for each in named.stages], [each.name for each in running.graph.stages]
        if set(wanted) != set(there):
            raise PenstockError(
                f"managers must name the stages that pipeline {running.name!r} has, {', '.join(there)}, got "
                f"{', '.join(wanted)}: slots would be changed of stages that are not there"
            )

    def close(self) -> None:
        self._closed = True

    def _manage_what_runs(self) -> bool:
        """Whether there is, or was, anything to manage."""
        running = [each for each in self._pipelines() if each.stages]
        for each in running:
            if each.name not in self._named:
                self._managed[each.name] = _as_it_runs(self._managed.get(each.name), managed(each))
        now = tuple(self._managed[each.name] for each in running)
        if now != self.loop.elasticity.pipelines:
            self.loop.elasticity = replace(self.loop.elasticity, pipelines=now)
        self._begun = self._begun or bool(running)
        return self._begun

    def _observe(self, now: float) -> Observation:
        stages = {stage.name: stage for each in self._pipelines() for stage in tuple(each.stages)}
        profiles = self._around.profiles
        seen = {
            name: replace(
                stage_seen(self._recent.of(name, stage.books, now), stage.slots, profiles.of(name)),
                since=self._stages.changed_at.get(name, 0.0),
            )
            for name, stage in stages.items()
        }
        return self._meter.look(now, self._nodes.nodes(), self._nodes.use(), seen, self._actuator.name_of)


class _Noted:
    """Changes slots, and notes when each stage had changed."""

    def __init__(self, stages: SlotSetter):
        self._stages = stages
        self.changed_at: dict[str, float] = {}

    def set_slots(self, slots: Mapping[str, int], reason: str = "") -> None:
        for change in self._stages.set_slots(slots, reason):
            self.changed_at[change.stage] = change.at


def node_changes(decisions: Iterable[Decision]) -> list[tuple[str, str, str]]:
    """Of the decisions those that change nodes: which, what becomes of it, and why."""
    kinds = (AddNode, HideNode, ShowNode, ReleaseNode)
    return [
        (each.change.node, str(each.change), each.reason)
        for each in decisions
        if each.kind in ("granted", "cancelled") and isinstance(each.change, kinds)
    ]


def _as_it_runs(known: ManagedPipeline | None, now: ManagedPipeline) -> ManagedPipeline:
    """With the target of now; as it was first seen, if it still has the same stages."""
    if known is None or [each.name for each in known.stages] != [each.name for each in now.stages]:
        return now
    return replace(known, target_seconds=now.target_seconds)


def managed(running: RunningPipeline) -> ManagedPipeline:
    """A pipeline as the managers take it: all its stages, as they run now, and its strictest target."""
    slots = {stage.name: stage for stage in tuple(running.stages)}
    stages = tuple(
        ManagedStage(
            each.name,
            replicas=slots[each.name].slots,
            elastic=slots[each.name].slots_may_change,
        )
        for each in running.graph.stages
    )
    targets = [each.latency_seconds for each in running.graph.stages if each.latency_seconds is not None]
    return ManagedPipeline(running.name, stages, target_seconds=min(targets, default=inf))
