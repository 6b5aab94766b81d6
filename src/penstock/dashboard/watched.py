"""What is asked of an engine that is watched, and what of its pipelines can be read from their graphs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.measure.alerts import DiskSeen
from penstock.measure.changes import Change
from penstock.measure.profiles import StageProfile
from penstock.measure.turns import TurnRecord
from penstock.pipeline import sinks
from penstock.pipeline.latency import Duration
from penstock.pipeline.sources import FromSpool
from penstock.scheduling.decisions import Decision
from penstock.spark.reports import SinkReport, StageReport, TenantReport
from penstock.stages.stage import Stage, StageGraph

if TYPE_CHECKING:
    from penstock.operators.privacy.budget import Budget


class Watched(Protocol):
    """An `Engine`, as far as it is watched."""

    state: Path

    @property
    def pool_slots(self) -> int: ...

    @property
    def policy(self) -> object: ...

    @property
    def in_line(self) -> frozenset[str]: ...

    @property
    def pool_nodes(self) -> int | None: ...

    @property
    def away(self) -> frozenset[str]: ...

    @property
    def pipelines(self) -> Mapping[str, str]: ...

    @property
    def graphs(self) -> Mapping[str, StageGraph]: ...

    @property
    def scheduler_seconds(self) -> float: ...

    def tenant_of(self, name: str) -> str: ...

    def error(self, name: str) -> BaseException | None: ...

    def stages(self) -> list[StageReport]: ...

    def sinks(self) -> list[SinkReport]: ...

    def tenants(self) -> list[TenantReport]: ...

    def profile(self, stage: str) -> StageProfile | None: ...

    def decisions(self, stage: str | None = None, n: int = 100) -> tuple[Decision, ...]: ...

    def changes(self, since: float = 0.0) -> tuple[Change, ...]: ...

    def on_turn(self, listener: Callable[[TurnRecord], None]) -> None: ...

    def pause(self, name: str) -> None: ...

    def resume(self, name: str) -> None: ...

    def set_latency(self, name: str, sink: str, latency: Duration) -> None: ...


Edge = tuple[str, str, str, bool]


def edges(graph: StageGraph) -> Iterator[Edge]:
    """The lines of a drawing: from, to, the queue between them, and whether rows come round by it."""
    for queue in graph.queues.values():
        if queue.source is not None:
            for consumer in queue.consumers:
                yield f"source:{queue.source.name}", consumer, queue.name, False
    for stage in graph.stages:
        if stage.native is not None:
            yield f"source:{stage.native.name}", stage.name, "", False
        forward = graph.below(stage, loops=False)
        for below in graph.below(stage):
            yield stage.name, below.name, stage.output or "", below not in forward
        if stage.sink is not None:
            yield stage.name, f"sink:{stage.sink.name}", "", False


def steps(stage: Stage) -> tuple[str, ...]:
    """What a stage does, by the names of its operators."""
    return tuple(operator.name for operator in stage.operators)


def folders_of(graphs: Iterable[StageGraph]) -> list[Path]:
    """Where pipelines read and write besides the state directory: folders of sinks, spools of the user's."""
    ends: list[Any] = []
    for graph in graphs:
        ends += [stage.sink.spec for stage in graph.stages if stage.sink is not None]
        ends += [queue.source.spec for queue in graph.queues.values() if queue.source is not None]
    return [
        end.spool.path if hasattr(end, "spool") else Path(end.path).absolute()
        for end in ends
        if isinstance(end, (sinks.Parquet, sinks.JsonLines, sinks.Table, sinks.ToSpool, FromSpool))
    ]


def disks_of(folders: Iterable[Path]) -> list[DiskSeen]:
    """The disks that folders lie on, each named by the first of them, without those that cannot be asked."""
    found: dict[int, DiskSeen] = {}
    for folder in folders:
        # A sink's folder is made with its first rows.
        there = next((each for each in (folder, *folder.parents) if each.exists()), folder)
        try:
            device = there.stat().st_dev
            if device not in found:
                usage = shutil.disk_usage(there)
                found[device] = DiskSeen(str(folder), usage.free, usage.total)
        except OSError:
            continue
    return list(found.values())


def budgets_of(graphs: Iterable[StageGraph]) -> dict[str, Budget]:
    """The privacy budgets that pipelines pay from, by product."""
    found: dict[str, Budget] = {}
    for graph in graphs:
        for stage in graph.stages:
            for operator in stage.operators:
                release = getattr(operator.function, "__self__", None)
                budget, question = getattr(release, "budget", None), getattr(release, "question", None)
                if budget is not None and question is not None:
                    found[question.product] = budget
    return found
