"""All managers together: one look at everything, and what is to be done. E2DF, sections 3 and 4."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.plan.elastic.application_loops import run_applications, run_operators
from penstock.plan.elastic.application_manager import ApplicationPolicy, RefuseTaken
from penstock.plan.elastic.changes import Action, Decision
from penstock.plan.elastic.cheapest_nodes import CheapestNodes
from penstock.plan.elastic.infrastructure_loops import run_infrastructure, run_regions
from penstock.plan.elastic.infrastructure_manager import GrantOrAsk, InfrastructurePolicy
from penstock.plan.elastic.nodes import ElasticError
from penstock.plan.elastic.observation import Observation
from penstock.plan.elastic.operator_manager import OnlyMeasure, OperatorPolicy, Thresholds
from penstock.plan.elastic.queueing_plan import QueueingPlan
from penstock.plan.elastic.region_manager import KeepReserve, RegionPolicy
from penstock.plan.elastic.round import Round
from penstock.plan.elastic.settings import ManagedPipeline, Periods, Region
from penstock.plan.elastic.sight import take_in
from penstock.plan.elastic.state import ElasticState


@dataclass(frozen=True)
class Step:
    """What a look led to."""

    state: ElasticState
    actions: tuple[Action, ...]
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Elasticity:
    """Settings of all managers; the policies are those of the paper unless others are given.

    Pipelines and regions may change between looks: `dataclasses.replace(elasticity, pipelines=...)`.

    >>> from penstock.plan.elastic import ManagedStage, NodeSeen
    >>> stages = (ManagedStage("wc.split"), ManagedStage("wc.count"))
    >>> elasticity = Elasticity((ManagedPipeline("wc", stages),), (Region("edge", reserve_slots=2),))
    >>> nodes = (NodeSeen("edge-1", "edge", 1), NodeSeen("edge-2", "edge", 1))
    >>> step = elasticity.step(ElasticState(), Observation(0.0, nodes))
    >>> [str(action.change) for action in step.actions[:3]]
    ['a replica of wc.split on edge-1', 'a replica of wc.count on edge-2', 'node edge-3 of 1 slot in edge']
    """

    pipelines: tuple[ManagedPipeline, ...]
    regions: tuple[Region, ...]
    periods: Periods = field(default_factory=Periods)
    operators: OperatorPolicy = field(default_factory=Thresholds)
    applications: ApplicationPolicy = field(default_factory=RefuseTaken)
    region_policy: RegionPolicy = field(default_factory=KeepReserve)
    infrastructure: InfrastructurePolicy = field(default_factory=GrantOrAsk)
    seed: int = 0

    def __post_init__(self) -> None:
        regions = [region.name for region in self.regions]
        stages = [stage for each in self.pipelines for stage in each.stages]
        for what, names in (("regions", regions), ("stages", [stage.name for stage in stages])):
            if len(set(names)) < len(names):
                raise ElasticError(
                    f"{what} must have different names, got {names}: which is meant is not clear"
                )
        if not regions:
            raise ElasticError("there must be at least 1 region, got none: no replica could be placed")
        for stage in stages:
            if stage.region and stage.region not in regions:
                raise ElasticError(
                    f"stage {stage.name!r} must be in one of the regions {', '.join(regions)}, got "
                    f"{stage.region!r}: no node would be started for it"
                )

    @classmethod
    def model_based(
        cls,
        pipelines: tuple[ManagedPipeline, ...],
        regions: tuple[Region, ...],
        periods: Periods | None = None,
    ) -> Elasticity:
        """Replicas by the queueing plan, nodes by the cheapest set that carries it."""
        periods = periods or Periods()
        nodes_ahead = 2.0 * periods.infrastructure_seconds
        return cls(
            pipelines,
            regions,
            periods,
            operators=OnlyMeasure(),
            applications=QueueingPlan(
                2.0 * periods.application_seconds, nodes_ahead, calm_seconds=4.0 * periods.application_seconds
            ),
            infrastructure=CheapestNodes(periods.infrastructure_seconds),
        )

    def step(self, state: ElasticState, seen: Observation) -> Step:
        """Lets every manager look whose time has come."""
        round_ = Round(self, state, seen)
        take_in(round_)
        periods = self.periods
        if round_.is_due("operator", periods.operator_seconds):
            run_operators(round_)
        if round_.is_due("application", periods.application_seconds):
            run_applications(round_)
        if round_.is_due("region", periods.region_seconds):
            run_regions(round_)
        if round_.is_due("infrastructure", periods.infrastructure_seconds):
            run_infrastructure(round_)
        return Step(round_.state(), tuple(round_.actions), tuple(round_.decisions))
