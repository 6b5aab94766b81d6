"""The metrics of an engine: one table of them, and Prometheus' text format of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from penstock.dashboard.snapshot import Snapshot
from penstock.measure.alerts import KINDS, SEVERITIES
from penstock.measure.histogram import LatencyHistogram

Labels = Mapping[str, str]
Samples = Iterable[tuple[Labels, float]]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Seconds: fixed, so that histograms of several engines can be added up."""
STATES = ("running", "paused", "failed", "stopped")


@dataclass(frozen=True)
class Metric:
    """A line of the table: its name, its kind, what it tells, and how it is read from a snapshot.

    Labels are pipeline, stage, sink, tenant, product and path, which a file declares, and words of which
    there are few: their number never grows with what arrives.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    read: Callable[[Snapshot], Samples]
    part: str = ""
    """Of a histogram, which is three lines: "bucket", "sum" or "count"."""

    @property
    def family(self) -> str:
        """The name under which its kind is told."""
        return self.name.removesuffix(f"_{self.part}") if self.part else self.name


def _by_stage(field: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return (
            ({"pipeline": each.pipeline, "stage": each.name}, float(getattr(each, field)))
            for each in snapshot.stages
            if getattr(each, field) is not None
        )

    return read


def _by_sink(field: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return (
            ({"pipeline": each.pipeline, "sink": each.sink}, float(getattr(each, field)))
            for each in snapshot.sinks
            # A latency of nothing would be a wrong zero.
            if getattr(each, field) is not None and (each.results_minute or field not in ("p50", "p99"))
        )

    return read


def _by_pipeline(field: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return (
            ({"pipeline": each.name}, float(getattr(each, field)))
            for each in snapshot.pipelines
            if getattr(each, field) is not None
        )

    return read


def _by_tenant(field: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return (({"tenant": each.name}, float(getattr(each, field))) for each in snapshot.tenants)

    return read


def _of_engine(field: str) -> Callable[[Snapshot], Samples]:
    return lambda snapshot: [({}, float(getattr(snapshot, field)))]


def _turn_seconds(snapshot: Snapshot) -> Samples:
    for each in snapshot.stages:
        since = each.turn_since
        running = 0.0 if since is None else max(snapshot.at - since, 0.0)
        yield {"pipeline": each.pipeline, "stage": each.name}, running


def _row_seconds(snapshot: Snapshot) -> Samples:
    for each in snapshot.stages:
        parts = {
            "queue": each.queue_seconds,
            "schedule": each.schedule_seconds,
            "compute": each.compute_seconds,
        }
        for part, seconds in parts.items():
            yield {"pipeline": each.pipeline, "stage": each.name, "part": part}, seconds


def _states(snapshot: Snapshot) -> Samples:
    for each in snapshot.pipelines:
        for state in STATES:
            yield {"pipeline": each.name, "tenant": each.tenant, "state": state}, float(each.state == state)


def _alerts(snapshot: Snapshot) -> Samples:
    for kind in KINDS:
        for severity in SEVERITIES:
            there = sum(each.kind == kind and each.severity == severity for each in snapshot.alerts)
            yield {"kind": kind, "severity": severity}, float(there)


def _stuck(snapshot: Snapshot) -> Samples:
    stuck = {each.subject for each in snapshot.alerts if each.kind == "stuck"}
    return (
        ({"pipeline": each.pipeline, "stage": each.name}, float(each.name in stuck))
        for each in snapshot.stages
    )


def _nodes(snapshot: Snapshot) -> Samples:
    return [] if snapshot.nodes is None else [({}, float(snapshot.nodes))]


def _latencies(snapshot: Snapshot) -> Iterator[tuple[dict[str, str], LatencyHistogram]]:
    for each in snapshot.sinks:
        yield {"pipeline": each.pipeline, "sink": each.sink}, snapshot.latencies[each.name]


def _latency_buckets(snapshot: Snapshot) -> Samples:
    """Counted when somebody asks, not at every look."""
    for labels, seen in _latencies(snapshot):
        counts = (*seen.counts_within(*BUCKETS), seen.count)
        for bound, count in zip((*map(_number, BUCKETS), "+Inf"), counts, strict=True):
            yield {**labels, "le": bound}, count


LATENCY = "Latency of rows at a sink since its pipeline was started"

METRICS: tuple[Metric, ...] = (
    Metric("penstock_slots", "gauge", "Slots of the pool.", _of_engine("slots")),
    Metric("penstock_nodes", "gauge", "Nodes of the cluster, where there is one.", _nodes),
    Metric(
        "penstock_pipeline_state",
        "gauge",
        "1 for the state that a pipeline is in, 0 for the others.",
        _states,
    ),
    Metric(
        "penstock_utilisation_cv",
        "gauge",
        "Coefficient of variation of utilisation over a pipeline's stages, last minute.",
        _by_pipeline("utilisation_cv"),
    ),
    Metric(
        "penstock_weight_cv",
        "gauge",
        "Coefficient of variation of w*r/q over a pipeline's stages, last minute.",
        _by_pipeline("weight_cv"),
    ),
    Metric(
        "penstock_balance",
        "gauge",
        "w*r/q of a stage, relative to its pipeline's first stages, last minute.",
        _by_stage("balance"),
    ),
    Metric("penstock_turns_total", "counter", "Turns that a stage has had.", _by_stage("turns")),
    Metric("penstock_rows_in_total", "counter", "Rows that a stage has taken.", _by_stage("rows_in")),
    Metric("penstock_rows_out_total", "counter", "Rows that a stage has put out.", _by_stage("rows_out")),
    Metric(
        "penstock_late_rows_total", "counter", "Rows that came after the watermark.", _by_stage("late_rows")
    ),
    Metric(
        "penstock_dead_rows_total", "counter", "Rows put into the dead-letter queue.", _by_stage("dead_rows")
    ),
    Metric(
        "penstock_slot_seconds_total",
        "counter",
        "Slot time that the turns of a stage have taken: seconds times slots.",
        _by_stage("slot_seconds"),
    ),
    Metric("penstock_rows_waiting", "gauge", "Rows that wait for a stage.", _by_stage("rows_waiting")),
    Metric(
        "penstock_utilisation_ratio",
        "gauge",
        "Share of the last minute in which a row waited for a stage or a turn of it ran.",
        _by_stage("utilisation"),
    ),
    Metric(
        "penstock_row_seconds",
        "gauge",
        "Where the time of a row at a stage went in the last minute: queue, schedule, compute.",
        _row_seconds,
    ),
    Metric(
        "penstock_turn_running_seconds",
        "gauge",
        "For how long the turn runs that a stage is in, 0 for none.",
        _turn_seconds,
    ),
    Metric(
        "penstock_stage_stuck", "gauge", "1 if a stage has stopped moving, with its rows waiting.", _stuck
    ),
    Metric("penstock_results_total", "counter", "Rows that have come to a sink.", _by_sink("results")),
    Metric(
        "penstock_results_in_time_total",
        "counter",
        "Rows at a sink within its present target.",
        _by_sink("results_in_time"),
    ),
    Metric("penstock_latency_seconds_bucket", "histogram", f"{LATENCY}.", _latency_buckets, "bucket"),
    Metric(
        "penstock_latency_seconds_sum",
        "histogram",
        f"{LATENCY}, added up.",
        lambda snapshot: ((labels, seen.mean * seen.count) for labels, seen in _latencies(snapshot)),
        "sum",
    ),
    Metric(
        "penstock_latency_seconds_count",
        "histogram",
        "Rows whose latency it is.",
        lambda snapshot: ((labels, seen.count) for labels, seen in _latencies(snapshot)),
        "count",
    ),
    Metric(
        "penstock_latency_p50_seconds",
        "gauge",
        "Latency that half of the last minute's rows at a sink did not exceed.",
        _by_sink("p50"),
    ),
    Metric(
        "penstock_latency_p99_seconds",
        "gauge",
        "Latency that 99% of the last minute's rows at a sink did not exceed.",
        _by_sink("p99"),
    ),
    Metric("penstock_latency_target_seconds", "gauge", "The target of a sink.", _by_sink("target_seconds")),
    Metric(
        "penstock_in_time_ratio",
        "gauge",
        "Share of the last minute's rows at a sink that came within its target.",
        _by_sink("in_time"),
    ),
    Metric(
        "penstock_tenant_in_time_ratio",
        "gauge",
        "Share of the last minute's rows at a tenant's sinks that came within their targets.",
        _by_tenant("in_time"),
    ),
    Metric(
        "penstock_tenant_slot_seconds_total",
        "counter",
        "Slot time that the turns of a tenant have taken.",
        _by_tenant("slot_seconds"),
    ),
    Metric(
        "penstock_tenant_slots_busy",
        "gauge",
        "Slots that a tenant occupied, mean of the last minute.",
        _by_tenant("slots_busy"),
    ),
    Metric("penstock_alerts", "gauge", "Alerts that are there now.", _alerts),
    Metric(
        "penstock_privacy_budget_spent_ratio",
        "gauge",
        "What the subject that spent most has spent of a product's privacy budget.",
        lambda snapshot: (({"product": each.product}, each.share_spent) for each in snapshot.budgets),
    ),
    Metric(
        "penstock_disk_free_bytes",
        "gauge",
        "Free bytes on a disk: that of the state directory, and others that sinks and spools lie on.",
        lambda snapshot: (({"path": each.path}, float(each.free_bytes)) for each in snapshot.disks),
    ),
    Metric(
        "penstock_disk_free_ratio",
        "gauge",
        "Free share of it.",
        lambda snapshot: (({"path": each.path}, each.share_free) for each in snapshot.disks),
    ),
    Metric(
        "penstock_scheduler_seconds_total",
        "counter",
        "Time spent in scheduling: looking at stages and deciding.",
        _of_engine("scheduler_seconds"),
    ),
    Metric(
        "penstock_watch_seconds_total",
        "counter",
        "Processor time spent in watching: looks, messages to viewers, alerts.",
        _of_engine("watch_seconds"),
    ),
)


def exposition(snapshot: Snapshot) -> str:
    """All metrics in Prometheus' text format."""
    return "".join(line for metric in METRICS for line in _lines(metric, snapshot))


def _lines(metric: Metric, snapshot: Snapshot) -> Iterator[str]:
    if metric.part in ("", "bucket"):
        yield f"# HELP {metric.family} {metric.help}\n"
        yield f"# TYPE {metric.family} {metric.kind}\n"
    for labels, value in metric.read(snapshot):
        named = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        yield f"{metric.name}{{{named}}} {_number(value)}\n" if named else f"{metric.name} {_number(value)}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """Whole numbers as such: a counter must not lose its last digits."""
    if not isfinite(value):
        return "NaN" if value != value else ("+Inf" if value > 0 else "-Inf")
    return str(int(value)) if value == int(value) else repr(value)
