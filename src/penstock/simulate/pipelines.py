"""From declared pipelines and what is known of their costs to what can be simulated."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from math import floor

from penstock.pipeline.nodes import Source
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.sources import Rate, Replay
from penstock.plan.from_graphs import Costs
from penstock.simulate.arrivals import Ticks
from penstock.simulate.costs import TurnCost
from penstock.simulate.errors import SimulationError
from penstock.simulate.plant import Inflow, Plant, StageSetup, WindowSetup
from penstock.stages.fuse import cut
from penstock.stages.stage import Stage, StageGraph, first_stages

RATE_TICK_SECONDS = 1.0
UNKNOWN_TICK_SECONDS = 0.1


class MissingCosts(SimulationError):
    """Stages of which nothing is known; `stages` names them."""

    def __init__(self, stages: Sequence[str]) -> None:
        self.stages = tuple(stages)
        shown = ", ".join(self.stages[:5]) + (", ..." if len(self.stages) > 5 else "")
        super().__init__(
            f"stages must have known costs to be simulated, got none for {shown}: "
            "run `penstock profile` on the same pipelines and state directory first"
        )


def plant_of(
    pipelines: Sequence[Pipeline],
    costs: Costs,
    *,
    scv: float = 0.0,
    rows_per_second: float | None = None,
) -> Plant:
    """The stages of these pipelines, with costs from profiles, fed as their sources say.

    `scv` is how much turns differ from what is predicted. With `rows_per_second` all sources together
    give that, in proportion to their own rates, or evenly where one of them has none.
    """
    graphs = tuple(cut(pipeline) for pipeline in pipelines)
    names = [stage.name for graph in graphs for stage in graph.stages]
    if missing := [name for name in names if costs(name) is None]:
        raise MissingCosts(missing)
    stages = [
        _setup(stage, graph, pipeline, costs, scv)
        for pipeline, graph in zip(pipelines, graphs, strict=True)
        for stage in graph.stages
    ]
    inflows = [flow for graph in graphs for flow in _inflows(graph, rows_per_second is not None)]
    plant = Plant(tuple(stages), tuple(inflows), graphs)
    return plant if rows_per_second is None else _at_rate(plant, graphs, rows_per_second)


def _setup(stage: Stage, graph: StageGraph, pipeline: Pipeline, costs: Costs, scv: float) -> StageSetup:
    profile = costs(stage.name)
    assert profile is not None
    window = next(iter(stage.windows.values()), None)
    share = pipeline.tenant.share
    return StageSetup(
        stage.name,
        stage.pipeline,
        TurnCost.of(profile, scv),
        stage.inputs,
        output=stage.output,
        sink=stage.sink.name if stage.sink is not None else None,
        latency_seconds=stage.latency_seconds,
        target_seconds=stage.sink.latency_seconds if stage.sink is not None else None,
        slots=stage.parallelism,
        selectivity=profile.selectivity,
        depth=stage.depth,
        window=None
        if window is None
        else WindowSetup(window.size_seconds, window.slide_seconds, window.late_seconds),
        tenant=pipeline.tenant.name,
        share=None if share is None else share / max(len(first_stages(graph)), 1),
        block_rows=stage.block_rows,
        profiled_rows=profile.most_rows,
        native=stage.native is not None,
    )


def _inflows(graph: StageGraph, rate_is_given: bool) -> list[Inflow]:
    fed = [(name, queue.source) for name, queue in graph.queues.items() if queue.source is not None]
    fed += [(stage.inputs[0], stage.native) for stage in graph.stages if stage.native is not None]
    return [
        _inflow(queue, source, graph.pipeline, rate_is_given)
        for queue, source in dict(fed).items()
        if any(queue in stage.inputs for stage in graph.stages)
    ]


def _inflow(queue: str, source: Source, pipeline: str, rate_is_given: bool) -> Inflow:
    spec = source.spec
    if isinstance(spec, Rate):
        # Its time stamps are rounded to milliseconds, as in Spark.
        lag = -floor(0.5 - 1000.0 / spec.rows_per_second) / 1000.0
        ticks = Ticks(float(spec.rows_per_second), RATE_TICK_SECONDS)
        return Inflow(queue, _out_of_step(queue, ticks), source.name, lag)
    if isinstance(spec, Replay):
        ticks = Ticks(spec.rows_per_second, spec.tick_seconds)
        return Inflow(queue, _out_of_step(queue, ticks), source.name, 1.0 / spec.rows_per_second)
    if not rate_is_given:
        raise SimulationError(
            f"source {source.name!r} of pipeline {pipeline!r} must tell its rate to be simulated, got a "
            f"{type(spec).__name__}: give the rate in rows/s"
        )
    return Inflow(queue, _out_of_step(queue, Ticks(1.0, UNKNOWN_TICK_SECONDS)), source.name)


def _out_of_step(queue: str, ticks: Ticks) -> Ticks:
    """Sources are started one after the other: their ticks do not fall on one moment."""
    part = zlib.crc32(queue.encode()) / 2**32
    return replace(ticks, phase_seconds=part * ticks.tick_seconds)


def _at_rate(plant: Plant, graphs: Sequence[StageGraph], rows_per_second: float) -> Plant:
    known = all(
        isinstance(source.spec, Rate | Replay)
        for graph in graphs
        for source in (
            *(queue.source for queue in graph.queues.values()),
            *(stage.native for stage in graph.stages),
        )
        if source is not None
    )
    total = sum(flow.arrivals.rows_per_second for flow in plant.inflows)
    if known:
        return plant.scaled(rows_per_second / total)
    each = rows_per_second / len(plant.inflows)
    inflows = tuple(
        replace(flow, arrivals=flow.arrivals.scaled(each / flow.arrivals.rows_per_second))
        for flow in plant.inflows
    )
    return replace(plant, inflows=inflows)
