"""An engine at one moment, as values: what page, terminal, metrics and alerts are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from penstock.measure.alerts import Alert, BudgetSeen, DiskSeen
from penstock.measure.histogram import LatencyHistogram


@dataclass(frozen=True, slots=True)
class PipelineNow:
    """A pipeline: whose it is, its state, and the lines between its stages."""

    name: str
    tenant: str
    state: str
    error: str
    input_rows_per_second: float | None
    highest_rows_per_second: float | None
    utilisation_cv: float | None
    """Coefficients of variation over its stages: of utilisation, and of w*r/q."""
    weight_cv: float | None
    edges: tuple[tuple[str, str, str, bool], ...]
    """From, to, the queue between, whether rows come round by it. Ends are `source:name`, `sink:name`."""


@dataclass(frozen=True, slots=True)
class StageNow:
    """A stage over the last minute; totals since the start."""

    name: str
    pipeline: str
    operators: tuple[str, ...]
    kind: str
    target_seconds: float | None
    slots: int
    rows_waiting: int
    arrival_rows_per_second: float
    service_rows_per_second: float
    utilisation: float
    slots_busy: float
    queue_seconds: float
    schedule_seconds: float
    compute_seconds: float
    turns: int
    rows_in: int
    rows_out: int
    slot_seconds: float
    late_rows: int
    dead_rows: int
    turn_since: float | None
    has_room: bool
    relative_input: float | None = None
    """q, r and w*r/q of EdgeWise, relative to its pipeline's first stages; None while they are not known."""
    relative_service: float | None = None
    balance: float | None = None


@dataclass(frozen=True, slots=True)
class SinkNow:
    """A sink: latency of the last minute's results, and how many there were in all."""

    name: str
    pipeline: str
    sink: str
    stage: str
    guarantee: str
    target_seconds: float | None
    p50: float
    p99: float
    in_time: float
    results_minute: float
    results: float
    results_in_time: float


@dataclass(frozen=True, slots=True)
class TenantNow:
    """A tenant: what was promised, what the last minute brought, and what it took of the pool."""

    name: str
    target_seconds: float | None
    share: float | None
    in_time: float
    results_minute: float
    slots_busy: float
    results: float
    slot_seconds: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All of it."""

    at: float
    slots: int
    policy: str
    nodes: int | None = None
    """Of the cluster; None where there is none."""
    pipelines: tuple[PipelineNow, ...] = ()
    stages: tuple[StageNow, ...] = ()
    sinks: tuple[SinkNow, ...] = ()
    tenants: tuple[TenantNow, ...] = ()
    alerts: tuple[Alert, ...] = ()
    disks: tuple[DiskSeen, ...] = ()
    budgets: tuple[BudgetSeen, ...] = ()
    scheduler_seconds: float = 0.0
    watch_seconds: float = 0.0
    started_at: float = 0.0
    latencies: Mapping[str, LatencyHistogram] = field(default_factory=dict)
    """Of each sink since its pipeline was started: for who asks for metrics, not for viewers."""

    def to_json(self) -> dict[str, Any]:
        """By section and name, numbers short: what a viewer is sent, and compared with what it was sent."""
        return {
            "engine": {
                "slots": self.slots,
                "nodes": self.nodes,
                "policy": self.policy,
                "started_at": round(self.started_at, 1),
                "scheduler_seconds": short(self.scheduler_seconds),
                "watch_seconds": short(self.watch_seconds),
            },
            "pipelines": {each.name: _item(each) for each in self.pipelines},
            "stages": {each.name: _item(each) for each in self.stages},
            "sinks": {each.name: _item(each) for each in self.sinks},
            "tenants": {each.name: _item(each) for each in self.tenants},
            "alerts": {each.key: _item(each) for each in self.alerts},
            "disks": {each.path: _item(each) for each in self.disks},
            "budgets": {each.product: _item(each) for each in self.budgets},
        }


TIMES = frozenset({"turn_since", "since"})
"""Points in time, which keep their milliseconds."""


def _item(value: Any) -> dict[str, Any]:
    names = value.__match_args__
    return {name: _plain(name, each) for name, each in zip(names, attrgetter(*names)(value), strict=True)}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3) if name in TIMES else short(value)
    return value


def short(value: float) -> float:
    """Four digits that count: more would change at every look and tell nobody anything.

    >>> short(0.123456), short(98765.4)
    (0.1235, 98770.0)
    """
    return float(f"{value:.4g}")


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """What came to a sink between two looks."""

    at: float
    sink: str
    p50: float
    p99: float
    results: float
    target_seconds: float | None


@dataclass(frozen=True, slots=True)
class UsePoint:
    """The pool between two looks: its slots, slots busy by tenant, and nodes where there is a cluster."""

    at: float
    slots: int
    busy: Mapping[str, float] = field(default_factory=dict)
    nodes: int | None = None
