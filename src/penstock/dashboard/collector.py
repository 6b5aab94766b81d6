"""Looks at an engine: one snapshot of it, and what happened since the look before."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.dashboard.sink_windows import SinkWindows
from penstock.dashboard.snapshot import (
    LatencyPoint,
    PipelineNow,
    SinkNow,
    Snapshot,
    StageNow,
    TenantNow,
    UsePoint,
)
from penstock.dashboard.stillness import Absence, Stillness
from penstock.dashboard.watched import Watched, budgets_of, disks_of, edges, folders_of, steps
from penstock.errors import PenstockError
from penstock.measure.alerts import (
    Alert,
    BudgetSeen,
    DiskSeen,
    SinkSeen,
    Turnover,
    away_brokers,
    failed_pipelines,
    follow,
    full_disks,
    missed_targets,
    slow_stages,
    spent_budgets,
    stuck_stages,
)
from penstock.measure.changes import Change
from penstock.measure.congestion import Congestion, congestion_of
from penstock.measure.stage_meter import StageFigures
from penstock.measure.turns import TurnRecord
from penstock.spark.reports import SinkReport, StageReport
from penstock.stages.stage import StageGraph, first_stages

SLOW_SECONDS = 30.0
"""Disks and budgets are looked at no more often."""
MOST_TURNS = 5_000


@dataclass(frozen=True)
class News:
    """What a look has brought: the state, and what happened since the one before."""

    snapshot: Snapshot
    turnover: Turnover
    use: UsePoint
    points: tuple[LatencyPoint, ...] = ()
    turns: tuple[TurnRecord, ...] = ()
    changes: tuple[Change, ...] = ()


@dataclass
class Collector:
    """Looks at one engine; not safe for threads, but for the turns it is told of."""

    engine: Watched
    started_at: float = 0.0
    watch_seconds: float = 0.0
    """Processor time that watching has taken so far; the caller counts it."""
    _turns: deque[TurnRecord] = field(default_factory=lambda: deque(maxlen=MOST_TURNS))
    _sinks: SinkWindows = field(default_factory=SinkWindows)
    _still: Stillness = field(default_factory=Stillness)
    _absent: Absence = field(default_factory=Absence)
    _disks: tuple[DiskSeen, ...] = ()
    _budgets: tuple[BudgetSeen, ...] = ()
    _free: int = 0
    _slow_at: float = float("-inf")
    _changes_at: float = 0.0
    _turnover: Turnover = field(default_factory=lambda: Turnover(()))

    def __post_init__(self) -> None:
        self.engine.on_turn(self._turns.append)

    def look(self, now: float) -> News:
        """The engine at `now`."""
        self._look_slowly(now)
        graphs, states = self.engine.graphs, self.engine.pipelines
        reports = self.engine.stages()
        owners = {name: self.engine.tenant_of(name) for name in graphs}
        loads = self._loads(graphs, reports)
        stages = tuple(
            _stage(each, graphs[each.pipeline], loads[each.pipeline])
            for each in reports
            if each.pipeline in graphs
        )
        sinks = self._look_at_sinks(now, graphs)
        self._turnover = follow(self._turnover.alerts, self._alerts(now, stages, sinks, states))
        busy = _busy(stages, owners)
        snapshot = Snapshot(
            at=now,
            slots=self.engine.pool_slots,
            nodes=self.engine.pool_nodes,
            policy=str(self.engine.policy),
            pipelines=self._pipelines(graphs, states, owners, loads),
            stages=stages,
            sinks=sinks,
            tenants=self._tenants(sinks, owners, busy),
            alerts=self._turnover.alerts,
            disks=self._disks,
            latencies=self._sinks.histograms,
            budgets=self._budgets,
            scheduler_seconds=self.engine.scheduler_seconds,
            watch_seconds=self.watch_seconds,
            started_at=self.started_at,
        )
        return self._news(now, snapshot, UsePoint(now, snapshot.slots, busy, snapshot.nodes))

    def _news(self, now: float, snapshot: Snapshot, use: UsePoint) -> News:
        turns = tuple(self._turns.popleft() for _ in range(len(self._turns)))
        changes = self.engine.changes(self._changes_at)
        if changes:
            self._changes_at = changes[-1].at
        points = tuple(self._sinks.points(now))
        return News(snapshot, self._turnover, use, points, turns, changes)

    def _look_at_sinks(self, now: float, graphs: Mapping[str, StageGraph]) -> tuple[SinkNow, ...]:
        ends = {
            (graph.pipeline, stage.sink.name): stage.name
            for graph in graphs.values()
            for stage in graph.stages
            if stage.sink is not None
        }
        reports = [each for each in self.engine.sinks() if (each.pipeline, each.sink) in ends]
        self._sinks.look(now, reports)
        return tuple(self._sink(each, ends[each.pipeline, each.sink]) for each in reports)

    def _sink(self, report: SinkReport, stage: str) -> SinkNow:
        name, target, latency = f"{report.pipeline}.{report.sink}", report.target_seconds, report.latency
        last = self._sinks.last_minute(name)
        p50, p99 = last.quantiles(0.5, 0.99)
        return SinkNow(
            name=name,
            pipeline=report.pipeline,
            sink=report.sink,
            stage=stage,
            guarantee=report.guarantee,
            target_seconds=target,
            p50=p50,
            p99=p99,
            in_time=1.0 if target is None or not last.count else last.share_within(target),
            results_minute=last.count,
            results=latency.count,
            results_in_time=report.share_in_time * latency.count,
        )

    def _loads(
        self, graphs: Mapping[str, StageGraph], reports: Iterable[StageReport]
    ) -> dict[str, Congestion]:
        figures: dict[str, dict[str, StageFigures]] = defaultdict(dict)
        for report in reports:
            figures[report.pipeline][report.stage] = report.figures
        slots = self.engine.pool_slots
        return {
            name: congestion_of(figures[name], slots, first_stages(graph)) for name, graph in graphs.items()
        }

    def _pipelines(
        self,
        graphs: Mapping[str, StageGraph],
        states: Mapping[str, str],
        owners: Mapping[str, str],
        loads: Mapping[str, Congestion],
    ) -> tuple[PipelineNow, ...]:
        found = []
        for name, graph in graphs.items():
            load = loads[name]
            found.append(
                PipelineNow(
                    name=name,
                    tenant=owners[name],
                    state=states.get(name, "stopped"),
                    error=self._error(name, states),
                    input_rows_per_second=load.input_rows_per_second,
                    highest_rows_per_second=load.highest_rows_per_second,
                    utilisation_cv=load.utilisation_cv,
                    weight_cv=load.weight_cv,
                    edges=tuple(edges(graph)),
                )
            )
        return tuple(found)

    def _error(self, name: str, states: Mapping[str, str]) -> str:
        return str(self.engine.error(name) or "no reason is known") if states.get(name) == "failed" else ""

    def _tenants(
        self, sinks: Iterable[SinkNow], owners: Mapping[str, str], busy: Mapping[str, float]
    ) -> tuple[TenantNow, ...]:
        results: dict[str, float] = defaultdict(float)
        in_time: dict[str, float] = defaultdict(float)
        for sink in sinks:
            if sink.target_seconds is not None:
                results[owners[sink.pipeline]] += sink.results_minute
                in_time[owners[sink.pipeline]] += sink.results_minute * sink.in_time
        return tuple(
            TenantNow(
                name=each.name,
                target_seconds=each.latency_seconds,
                share=each.share,
                in_time=in_time[each.name] / results[each.name] if results[each.name] else 1.0,
                results_minute=results[each.name],
                slots_busy=busy.get(each.name, 0.0),
                results=each.results,
                slot_seconds=each.slot_seconds,
            )
            for each in self.engine.tenants()
        )

    def _alerts(
        self, now: float, stages: Iterable[StageNow], sinks: Iterable[SinkNow], states: Mapping[str, str]
    ) -> list[Alert]:
        seen = [
            SinkSeen(each.name, each.target_seconds, each.results_minute, each.in_time, each.p99)
            for each in sinks
        ]
        failures = [(name, self._error(name, states)) for name, state in states.items() if state == "failed"]
        free = self.engine.pool_slots - sum(each.slots for each in stages if each.turn_since is not None)
        # In a full pool a slot is free for a moment between two turns.
        free_before, self._free = self._free, free
        standing = self._still.look(now, stages, states, self.engine)
        return [
            *failed_pipelines(failures, now),
            *stuck_stages(standing, free, now),
            *slow_stages(standing, min(free, free_before), now),
            *away_brokers(self._absent.look(now, self.engine.away), now),
            *missed_targets(seen, now),
            *spent_budgets(self._budgets, now),
            *full_disks(self._disks, now),
        ]

    def _look_slowly(self, now: float) -> None:
        """Disks and budgets: they change slowly, and asking takes long."""
        if now - self._slow_at < SLOW_SECONDS:
            return
        self._slow_at = now
        graphs = self.engine.graphs.values()
        self._disks = tuple(disks_of([self.engine.state, *folders_of(graphs)]))
        found = []
        for product, budget in budgets_of(graphs).items():
            try:
                found.append(BudgetSeen(product, budget.share_spent(product)))
            except PenstockError:
                continue  # its stage says so itself when it cannot pay
        self._budgets = tuple(found)


def _stage(report: StageReport, graph: StageGraph, load: Congestion) -> StageNow:
    figures, declared = report.figures, graph.stage(report.stage)
    relative = next((each for each in load.stages if each.stage == report.stage), None)
    return StageNow(
        name=report.stage,
        pipeline=report.pipeline,
        operators=steps(declared),
        kind=report.kind,
        target_seconds=declared.latency_seconds,
        slots=report.slots,
        rows_waiting=figures.rows_waiting,
        arrival_rows_per_second=figures.arrival_rows_per_second,
        service_rows_per_second=figures.service_rows_per_second,
        utilisation=figures.utilisation,
        slots_busy=figures.slot_seconds / figures.seconds if figures.seconds > 0 else 0.0,
        queue_seconds=figures.queue_seconds,
        schedule_seconds=figures.schedule_seconds,
        compute_seconds=figures.compute_seconds,
        turns=figures.total_turns,
        rows_in=figures.total_rows_in,
        rows_out=figures.total_rows_out,
        slot_seconds=report.slot_seconds,
        late_rows=report.late_rows,
        dead_rows=report.dead_rows,
        turn_since=report.turn_since,
        has_room=report.has_room,
        relative_input=None if relative is None else relative.relative_input,
        relative_service=None if relative is None else relative.relative_service,
        balance=None if relative is None else relative.balance,
    )


def _busy(stages: Iterable[StageNow], owners: Mapping[str, str]) -> dict[str, float]:
    """Slots busy over the last minute, by tenant."""
    busy: dict[str, float] = {}
    for stage in stages:
        owner = owners[stage.pipeline]
        busy[owner] = busy.get(owner, 0.0) + stage.slots_busy
    return busy
