"""Latency targets of stages, as they follow from those of the sinks below them."""

from __future__ import annotations

from dataclasses import replace

from penstock.stages.stage import Stage, StageGraph


def least_targets(graph: StageGraph) -> dict[str, float | None]:
    """The least target of the sinks that the rows of each stage may reach; None where none has one."""
    targets: dict[str, float | None] = {}
    for start in graph.stages:
        seen, ahead = {start.name: start}, [start]
        while ahead:
            for stage in graph.below(ahead.pop()):
                if stage.name not in seen:
                    seen[stage.name] = stage
                    ahead.append(stage)
        sinks = (stage.sink.latency_seconds for stage in seen.values() if stage.sink)
        targets[start.name] = min((target for target in sinks if target is not None), default=None)
    return targets


def with_target(graph: StageGraph, sink: str, latency_seconds: float) -> StageGraph:
    """The same graph with another target at a sink, and what follows from it; KeyError without it."""
    if sink not in {stage.sink.name for stage in graph.stages if stage.sink is not None}:
        raise KeyError(sink)
    changed = replace(
        graph, stages=tuple(_with_target(stage, sink, latency_seconds) for stage in graph.stages)
    )
    targets = least_targets(changed)
    return replace(
        changed,
        stages=tuple(replace(stage, latency_seconds=targets[stage.name]) for stage in changed.stages),
    )


def _with_target(stage: Stage, sink: str, latency_seconds: float) -> Stage:
    if stage.sink is None or stage.sink.name != sink:
        return stage
    return replace(stage, sink=replace(stage.sink, latency_seconds=latency_seconds))
