"""Looks, while pipelines run, whether targets are kept, and says so where they are not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock.measure.promises import Kept, unmet
from penstock.pipeline.latency import format_seconds
from penstock.pipeline.pipeline import Pipeline
from penstock.spark.profiles import Profiles
from penstock.spark.running import RunningPipeline
from penstock.stages.fuse import cut
from penstock.stages.stage import Stage, StageGraph

log = logging.getLogger("penstock")
LOOK_SECONDS = 30.0


@dataclass(frozen=True)
class _Seen:
    target_seconds: float
    results: float
    in_time: float


class PromiseWatch:
    """Compares each sink with its target every 30 s, and warns once for each spell of missing it."""

    def __init__(self, slots: Callable[[], int], profiles: Profiles, now: float):
        self._slots = slots
        self._profiles = profiles
        self._next = now + LOOK_SECONDS
        self._since = now
        self._slot_seconds = 0.0
        self._seen: dict[str, _Seen] = {}
        self._warned: set[str] = set()

    def look(self, now: float, pipelines: Iterable[RunningPipeline]) -> None:
        if now < self._next:
            return
        running = list(pipelines)
        used = sum(stage.books.slot_seconds for each in running for stage in tuple(each.stages))
        busy = max(used - self._slot_seconds, 0.0) / ((now - self._since) * self._slots())
        for each in running:
            for stage in each.graph.stages:
                self._compare(each, stage, min(busy, 1.0), now)
        self._next, self._since, self._slot_seconds = now + LOOK_SECONDS, now, used

    def _compare(self, running: RunningPipeline, stage: Stage, busy: float, now: float) -> None:
        live = next((each for each in tuple(running.stages) if each.name == stage.name), None)
        if live is None or stage.sink is None or stage.sink.latency_seconds is None:
            return
        latency, target = live.books.latency, stage.sink.latency_seconds
        in_time = latency.share_within(target) * latency.count if latency.count else 0.0
        seen = _Seen(target, latency.count, in_time)
        before = self._seen.get(stage.name, _Seen(target, 0.0, 0.0))
        self._seen[stage.name] = seen
        if before.target_seconds != target:
            return  # what came under another target says nothing of this one
        results = seen.results - before.results
        told = unmet(
            Kept(
                tenant=running.pipeline.tenant.name,
                sink=stage.sink.name,
                target_seconds=target,
                results=results,
                in_time=(seen.in_time - before.in_time) / results if results > 0 else 1.0,
                path_seconds=path_seconds(running.graph, stage, self._profiles),
                slots=self._slots(),
                busy=busy,
                overdue_seconds=overdue_seconds(running, stage, target, now),
            )
        )
        if told is None:
            self._warned.discard(stage.name)
        elif stage.name not in self._warned:
            self._warned.add(stage.name)
            log.warning("%s", told)


def overdue_seconds(running: RunningPipeline, stage: Stage, target_seconds: float, now: float) -> float:
    """How far the work that waits at a stage, or on the way to it, is beyond the target; at least 0.

    Rows of a window that is not complete are not due yet.
    """
    leading = {each.name for each in leading_to(running.graph, stage)}
    views = [each.view(now) for each in tuple(running.stages) if each.name in leading]
    contexts = [view.context for view in views if view is not None]
    due = [each.time + target_seconds for each in contexts if each is not None and not each.deferred]
    return max(now - min(due, default=now), 0.0)


def leading_to(graph: StageGraph, stage: Stage) -> list[Stage]:
    """The stage itself and all above it."""
    found = [stage]
    for each in found:
        above = [one for one in graph.stages if each in graph.below(one, loops=False)]
        found += [one for one in above if one not in found]
    return found


def path_seconds(graph: StageGraph, stage: Stage, profiles: Profiles) -> float:
    """What the turns on the costliest way to a stage and through it take, as far as they are known."""
    costs: dict[str, float] = {}
    for each in graph.stages:
        profile = profiles.of(each.name)
        above = [costs[one.name] for one in graph.stages if each in graph.below(one, loops=False)]
        costs[each.name] = max(above, default=0.0) + (profile.mean_seconds if profile else 0.0)
    return costs[stage.name]


def known_to_be_late(pipeline: Pipeline, profiles: Profiles) -> list[str]:
    """A sentence for each sink whose target is less than its turns took when these stages last ran."""
    graph = cut(pipeline)
    found = []
    for stage in graph.stages:
        target = stage.sink.latency_seconds if stage.sink is not None else None
        taken = path_seconds(graph, stage, profiles)
        if stage.sink is not None and target is not None and taken > target:
            found.append(
                f"pipeline {pipeline.name!r}: sink {stage.sink.name!r}: its target of "
                f"{format_seconds(target)} cannot be met, as its turns took "
                f"{format_seconds(round(taken, 2))} when it last ran: fuse its stages, "
                f"give them more slots each, or promise {format_seconds(round(2 * taken, 1))}"
            )
    return found
