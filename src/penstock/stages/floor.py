"""Targets that cannot be met even when nothing else runs."""

from __future__ import annotations

from penstock.pipeline.checks import FloorTable
from penstock.pipeline.latency import format_seconds
from penstock.pipeline.pipeline import Pipeline
from penstock.stages.fuse import cut
from penstock.stages.stage import Stage, StageGraph


def targets_below_floor(pipeline: Pipeline, floor: FloorTable) -> tuple[str, ...]:
    """One warning for each sink whose target is less than the turns on its longest path take at least."""
    graph = cut(pipeline)
    paths = _longest_paths(graph, floor)
    return tuple(
        _warning(stage, paths[stage.name], floor)
        for stage in graph.stages
        if stage.sink is not None
        and stage.sink.latency_seconds is not None
        and stage.sink.latency_seconds < _seconds(paths[stage.name], floor)
    )


def _longest_paths(graph: StageGraph, floor: FloorTable) -> dict[str, tuple[Stage, ...]]:
    """For each stage the costliest way to it and through it, each loop passed once."""
    paths: dict[str, tuple[Stage, ...]] = {}
    for stage in graph.stages:
        above = [paths[each.name] for each in _above(graph, stage)]
        paths[stage.name] = (*max(above, key=lambda path: _seconds(path, floor), default=()), stage)
    return paths


def _above(graph: StageGraph, stage: Stage) -> list[Stage]:
    if stage.native is not None:
        return []
    forward = (feed.input for feed in stage.feeds if feed.loop is None)
    return [producer for queue in forward for producer in graph.producers_of(queue)]


def _seconds(path: tuple[Stage, ...], floor: FloorTable) -> float:
    return sum(floor[stage.turn_kind] for stage in path)


def _warning(stage: Stage, path: tuple[Stage, ...], floor: FloorTable) -> str:
    assert stage.sink is not None
    assert stage.sink.latency_seconds is not None
    parts = ", ".join(f"{each.name} {format_seconds(floor[each.turn_kind])}" for each in path)
    return (
        f"pipeline {stage.pipeline!r}: sink {stage.sink.name!r}: its target of "
        f"{format_seconds(stage.sink.latency_seconds)} is below the floor of "
        f"{format_seconds(_seconds(path, floor))} ({parts}): rows will be late even when nothing else runs"
    )
