"""OpenTelemetry gets the same metrics."""

from __future__ import annotations

import sys

import pytest
from tests.dashboard.fakes import FakeEngine

from penstock.dashboard import Watch
from penstock.dashboard.metrics import METRICS
from penstock.dashboard.otel import NotInstalled, export, name_of


def test_every_metric_is_read_by_an_exporter(engine: FakeEngine) -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason="penstock[otel] is not installed")
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    engine.advance(10)
    engine.pool_nodes = 2
    reader = InMemoryMetricReader()
    with Watch(engine, clock=engine.clock) as watch:
        assert export(watch, sdk.MeterProvider([reader])) == len(METRICS)
        data = reader.get_metrics_data()
    found = {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    budget = "penstock.privacy_budget_spent_ratio"
    assert set(found) == {name_of(metric) for metric in METRICS} - {budget}
    turns = {point.attributes["stage"]: point.value for point in found["penstock.turns"].data.data_points}
    assert turns["heat.warm"] == 20
    assert found["penstock.latency_p99_seconds"].unit == "s"
    assert found["penstock.latency_seconds_sum"].unit == "s"
    assert {point.attributes["le"] for point in found["penstock.latency_seconds_bucket"].data.data_points} > {
        "0.05",
        "+Inf",
    }


def test_without_the_extra_the_command_is_told_that_installs_it(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with Watch(engine, clock=engine.clock) as watch, pytest.raises(NotInstalled) as refused:
        export(watch)
    assert str(refused.value) == (
        "OpenTelemetry must be installed to export to it: pip install 'penstock[otel]'; nothing is exported"
    )
