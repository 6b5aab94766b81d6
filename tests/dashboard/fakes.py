"""An engine for tests of what watches one: pipelines, figures and turns as a small simulation, no Spark."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.pipeline.fakes import FakeSink, FakeSource, same

from penstock.errors import PenstockError
from penstock.measure.changes import Change
from penstock.measure.histogram import LatencyHistogram
from penstock.measure.profiles import StageProfile
from penstock.measure.stage_meter import StageMeter
from penstock.measure.turns import TurnRecord
from penstock.pipeline import Pipeline
from penstock.pipeline.latency import Duration, format_seconds, parse_latency
from penstock.pipeline.tenant import Tenant
from penstock.scheduling.decisions import Decision, Grant
from penstock.scheduling.policies import Llf
from penstock.spark.reports import SinkReport, StageReport, TenantReport
from penstock.stages import StageGraph, cut
from penstock.stages.targets import with_target

BEGIN = 1_800_000_000.0


def pipelines() -> list[Pipeline]:
    """An urgent one with a branch, and a bulky one of another tenant."""
    heat = Pipeline("heat", tenant=Tenant("plant"))
    rows = heat.source("readings", FakeSource()).parse("parse", "ts TIMESTAMP")
    warm = rows.operator("warm", same).queue()
    warm.sink("archive", FakeSink(), latency="10s")
    peaks = warm.window("per second", on="ts", size="1s", aggregate="max(c) as peak").queue()
    peaks.operator("alarm", same).sink("alarms", FakeSink(), latency="800ms")
    bulk = Pipeline("usage", tenant=Tenant("billing"))
    sums = bulk.source("meters", FakeSource()).operator("clean", same).queue()
    sums.window("hourly", on="ts", size="10s", aggregate="count(*) as n").sink(
        "ledger", FakeSink(), latency="1m"
    )
    return [heat, bulk]


class FakeEngine:
    """Stages take turns of random lengths on two slots, by a clock that the test moves."""

    def __init__(self, state: Path, now: float = BEGIN, declared: Sequence[Pipeline] = ()):
        self.state = state
        self.now = now
        self.pool_slots = 2
        self.pool_nodes: int | None = None
        self.in_line: frozenset[str] = frozenset()
        self.away: frozenset[str] = frozenset()
        self.policy = Llf()
        self.scheduler_seconds = 0.0
        self._declared = {each.name: each for each in declared or pipelines()}
        self.graphs: dict[str, StageGraph] = {name: cut(each) for name, each in self._declared.items()}
        self.pipelines = dict.fromkeys(self.graphs, "running")
        names = [stage.name for graph in self.graphs.values() for stage in graph.stages]
        self.meters = {name: StageMeter(now) for name in names}
        self.latencies = {name: LatencyHistogram() for name in names}
        self.turn_since: dict[str, float] = {}
        self.errors: dict[str, Exception] = {}
        self.slow = 1.0
        self.rows_waiting = dict.fromkeys(names, 0)
        self._listeners: list[Callable[[TurnRecord], None]] = []
        self._changes: list[Change] = []
        self._decisions: list[Decision] = []
        self._chance = random.Random(7)
        self._batch = 0

    def clock(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Each stage of a running pipeline gets a turn about every half second."""
        end = self.now + seconds
        while self.now < end:
            for name, meter in self.meters.items():
                rows = self._chance.randrange(200, 2000)
                self.rows_waiting[name] += rows
                meter.queue_changed(self.rows_waiting[name], self.now, arrived=rows)
                if self.pipelines[name.split(".")[0]] == "running":
                    self._turn(name, rows)
            self.now += 0.5

    def _turn(self, name: str, rows: int) -> None:
        took = self._chance.uniform(0.03, 0.16) * self.slow
        self.meters[name].turn_started(self.now)
        self._batch += 1
        waited = self._chance.uniform(0.0, 0.3) * self.slow
        record = TurnRecord(
            name, name.split(".")[0], self._batch, "direct", 1, self.now, self.now + took, rows, rows // 2,
            queue_seconds=0.01, schedule_seconds=waited, compute_seconds=took,
        )  # fmt: skip
        self.meters[name].turn_finished(record)
        self.rows_waiting[name] = 0
        self.meters[name].queue_changed(0, record.finished_at)
        self.latencies[name].add(took + waited + 0.1, rows)
        self._decisions.append(Grant(name, rows, 1, self.now, waited, "least laxity: must start in 0.31 s"))
        for listener in self._listeners:
            listener(record)

    def stages(self) -> list[StageReport]:
        return [
            StageReport(
                graph.pipeline,
                stage.name,
                "held" if stage.stateful else "direct",
                self.meters[stage.name].figures(self.now),
                late_rows=0,
                dead_rows=3,
                turn_since=self.turn_since.get(stage.name),
                slot_seconds=12.5,
            )
            for graph in self.graphs.values()
            for stage in graph.stages
        ]

    def sinks(self) -> list[SinkReport]:
        return [
            SinkReport(
                graph.pipeline,
                stage.sink.name,
                "exactly once",
                stage.sink.latency_seconds,
                self.latencies[stage.name],
            )
            for graph in self.graphs.values()
            for stage in graph.stages
            if stage.sink is not None
        ]

    def tenants(self) -> list[TenantReport]:
        return [
            TenantReport(
                self.tenant_of(name),
                0.8,
                None,
                tuple(each for each in self.sinks() if each.pipeline == name),
                12.5,
                1000,
            )
            for name in self.graphs
        ]

    def tenant_of(self, name: str) -> str:
        return self._declared[name].tenant.name

    def error(self, name: str) -> BaseException | None:
        return self.errors.get(name)

    def profile(self, stage: str) -> StageProfile | None:
        return StageProfile(1e-4, 0.5, 0.02, 3e-6, turns=50, mean_seconds=0.1, most_rows=2000)

    def decisions(self, stage: str | None = None, n: int = 100) -> tuple[Decision, ...]:
        return tuple(each for each in self._decisions if stage in (None, each.stage))[-n:]

    def changes(self, since: float = 0.0) -> tuple[Change, ...]:
        return tuple(each for each in self._changes if each.at > since)

    def change(self, kind: str, subject: str, became: str, reason: str) -> None:
        self._changes.append(Change(self.now + 1e-6 * len(self._changes), kind, subject, became, reason))  # type: ignore[arg-type]

    def on_turn(self, listener: Callable[[TurnRecord], None]) -> None:
        self._listeners.append(listener)

    def pause(self, name: str) -> None:
        self._set(name, "paused")

    def resume(self, name: str) -> None:
        self._set(name, "running")

    def _set(self, name: str, state: str) -> None:
        if name not in self.pipelines:
            raise PenstockError(f"no pipeline {name!r} runs here, of {sorted(self.pipelines)}")
        self.pipelines[name] = state
        self.change("state", name, state, "asked for")

    def set_latency(self, name: str, sink: str, latency: Duration) -> None:
        self.graphs[name] = with_target(self.graphs[name], sink, parse_latency(latency))
        self.change("target", f"{name}.{sink}", format_seconds(parse_latency(latency)), "asked for")
