"""What is told of the four runs."""

from __future__ import annotations

import pytest
from tests.bench.elastic.made import made_run

from penstock.bench.elastic.scenarios import judged, tell
from penstock.bench.result import BenchResult


def test_savings_and_ratios_are_against_the_static_run() -> None:
    result = BenchResult("elastic")
    runs = {
        "static": made_run("static", 14, 16, latency=2.0),
        "nodes": made_run("nodes", 6, 12, latency=3.0, pauses=(0.5, 1.0)),
        "model": made_run("model", 7, 9, latency=2.2, pauses=(0.0,)),
    }
    tell(result, runs)
    figures = result.figures
    assert figures["replica_saving"] == pytest.approx(8 / 14)
    assert (figures["node_saving"], figures["node_saving_model"]) == (0.25, pytest.approx(7 / 16))
    assert figures["latency_ratio"] == pytest.approx(1.5)
    assert figures["latency_ratio_model"] == pytest.approx(1.1)
    assert figures["reconfiguration_pause_ms"] == pytest.approx(950.0)
    assert figures["reconfiguration_stopped_ms"] == pytest.approx(475.0)
    assert "latency_ratio_operators" not in figures
    assert result.missed == []


def test_what_is_lost_in_any_run_counts() -> None:
    result = BenchResult("elastic")
    runs = {
        "static": made_run("static", 14, 16, 1.0, lost=1),
        "nodes": made_run("nodes", 6, 12, 1.0, lost=2),
    }
    tell(result, runs)
    assert result.figures["lost"] == 3
    assert result.missed == ["lost"]


def test_latency_is_also_told_without_the_two_minutes_after_each_reconfiguration() -> None:
    run = judged(made_run("nodes", 6, 12, latency=1.0, changes=(100.0, 200.0)))
    assert run.latency_seconds == pytest.approx((280 + 3 * 20) / 300)
    assert run.settled_seconds == pytest.approx(1.0)
    assert run.reconfigurations == 2


def test_the_static_run_is_compared_without_the_same_moments() -> None:
    result = BenchResult("elastic")
    static, nodes = made_run("static", 14, 16, latency=1.0), made_run("nodes", 6, 12, 1.0, changes=(100.0,))
    seconds = static.counted.latencies.seconds
    # Slow just where the other was reconfigured.
    seconds[(static.counted.latencies.due >= 100.0) & (static.counted.latencies.due < 110.0)] = 50.0
    tell(result, {"static": static, "nodes": nodes})
    assert result.figures["latency_ratio_settled"] == pytest.approx(1.0)


def test_a_run_alone_is_told_without_ratios() -> None:
    result = BenchResult("elastic")
    tell(result, {"nodes": made_run("nodes", 6, 12, 1.0)})
    assert set(result.figures) == {"lost", "doubled", "reconfiguration_pause_ms"}
    # Nothing was divided, and that is said.
    assert result.figures["reconfiguration_pause_ms"] == 0.0
    assert result.setup["pauses"]["divisions"] == 0
