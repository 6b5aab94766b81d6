"""From the stages of pipelines, with what is known of their costs and rates, to what a plan is made for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from math import inf

from penstock.measure.profiles import StageProfile
from penstock.plan.workflow import PlanStage, Product, Workflow
from penstock.stages.stage import Stage, StageGraph

BEYOND_SEEN = 4
LEAST_KNOWN = 100
"""Rows up to which a plan may go, whatever turns were seen; beyond, four times the largest."""

Costs = Callable[[str], StageProfile | None]
"""What a stage costs, by its name; None while that is not known."""


def workflow_of(
    graphs: Iterable[StageGraph],
    costs: Costs,
    rates: Mapping[str, float],
    *,
    loops: bool = False,
    all_sinks: bool = False,
    slots: Mapping[str, int] | None = None,
    starting: Collection[str] = (),
) -> Workflow:
    """What is known of these pipelines, as a plan needs it; stages that had few turns yet are left out.

    `rates` are rows per second that come to a stage. With `loops`, rows that come round count too, and
    rates are of sources only. With `all_sinks`, those without a target are products that may take for ever.
    `slots` are those of stages that have others than their costs were learned on; those `starting` load
    their state next.
    """
    in_force = slots or {}
    stages: list[PlanStage] = []
    products: list[Product] = []
    for graph in graphs:
        known = {stage.name: profile for stage in graph.stages if (profile := _trusted(costs, stage.name))}
        above = _readers(graph, loops=False)
        round_ = _readers(graph, loops=True)
        for stage in graph.stages:
            if stage.name not in known:
                continue
            fed = {name: known[name].selectivity for name in above[stage.name] if name in known}
            back = {
                name: known[name].selectivity
                for name in round_[stage.name]
                if name in known and name not in above[stage.name]
            }
            # Rows from outside are those that a stage reads from a source, or from one not known yet.
            outside = rates.get(stage.name, 0.0)
            if fed and not loops:
                inside = sum(rates.get(name, 0.0) * share for name, share in fed.items())
                outside = max(outside - inside, 0.0) if _reads_source(graph, stage) else 0.0
            made = _plan_stage(stage, known[stage.name], fed, back if loops else {}, outside)
            slots_now = in_force.get(stage.name, made.slots)
            stages.append(replace(made, slots=slots_now, starts=stage.name in starting))
            products += _products(stage, all_sinks)
    return Workflow(tuple(stages), tuple(products))


def _reads_source(graph: StageGraph, stage: Stage) -> bool:
    return stage.native is not None or any(graph.queues[name].source is not None for name in stage.inputs)


def _readers(graph: StageGraph, *, loops: bool) -> dict[str, list[str]]:
    """For each stage, those whose rows it reads."""
    above: dict[str, list[str]] = {stage.name: [] for stage in graph.stages}
    for stage in graph.stages:
        for below in graph.below(stage, loops=loops):
            above[below.name].append(stage.name)
    return above


def _plan_stage(
    stage: Stage,
    profile: StageProfile,
    above: Mapping[str, float],
    loops: Mapping[str, float],
    rows_per_second: float,
) -> PlanStage:
    return PlanStage(
        stage.name,
        profile.fixed_seconds,
        profile.row_seconds,
        above,
        loops,
        rows_per_second=rows_per_second,
        slots=profile.slots,
        most_rows=max(BEYOND_SEEN * profile.most_rows, LEAST_KNOWN),
        block_rows=stage.block_rows,
        state_seconds=profile.state_seconds,
        seen_row_seconds=profile.seconds_per_row,
    )


def _products(stage: Stage, all_sinks: bool) -> list[Product]:
    if stage.sink is None or (stage.sink.latency_seconds is None and not all_sinks):
        return []
    target = inf if stage.sink.latency_seconds is None else stage.sink.latency_seconds
    return [Product(f"{stage.pipeline}.{stage.sink.name}", stage.name, target)]


def _trusted(costs: Costs, stage: str) -> StageProfile | None:
    """What is known of a stage that had some turns: the first ones are cold, and tell nothing of the next."""
    profile = costs(stage)
    return profile if profile is not None and profile.trusted else None
