"""The metrics: names by convention, bounded labels, Prometheus' text format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.dashboard.fakes import FakeEngine

from penstock.dashboard.collector import Collector
from penstock.dashboard.metrics import BUCKETS, METRICS, exposition
from penstock.dashboard.snapshot import Snapshot

DOCS = Path(__file__).resolve().parents[2] / "docs"
NAMES = {metric.name for metric in METRICS}
FAMILIES = {metric.family for metric in METRICS}
LABELS = {"pipeline", "stage", "sink", "tenant", "state", "part", "kind", "severity", "product", "path", "le"}
LINE = re.compile(r'([a-z0-9_]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)*)\})? (-?[0-9.e+-]+|NaN)')


@pytest.fixture
def snapshot(engine: FakeEngine) -> Snapshot:
    collector = Collector(engine)
    engine.advance(10)
    engine.pool_nodes = 2
    return collector.look(engine.now).snapshot


def test_every_line_is_a_comment_or_a_sample_of_a_metric_in_the_table(snapshot: Snapshot) -> None:
    seen = set()
    for line in exposition(snapshot).splitlines():
        if line.startswith("# "):
            assert re.fullmatch(r"# (HELP [a-z0-9_]+ .+|TYPE [a-z0-9_]+ (counter|gauge|histogram))", line)
            continue
        sample = LINE.fullmatch(line)
        assert sample is not None, line
        seen.add(sample[1])
        assert set(re.findall(r'([a-z]+)="', sample[2] or "")) <= LABELS
    assert seen == NAMES - {"penstock_privacy_budget_spent_ratio"}


def test_samples_are_told_by_stage_sink_and_tenant(snapshot: Snapshot) -> None:
    text = exposition(snapshot)
    assert 'penstock_turns_total{pipeline="heat",stage="heat.warm"} 20\n' in text
    assert 'penstock_latency_target_seconds{pipeline="heat",sink="alarms"} 0.8\n' in text
    assert 'penstock_pipeline_state{pipeline="heat",tenant="plant",state="running"} 1\n' in text
    assert 'penstock_weight_cv{pipeline="heat"} ' in text
    assert 'penstock_utilisation_cv{pipeline="heat"} ' in text
    assert 'penstock_balance{pipeline="heat",stage="heat.warm"} ' in text
    assert "penstock_slots 2\n" in text
    assert "penstock_nodes 2\n" in text


def test_without_a_cluster_nothing_is_told_of_nodes() -> None:
    assert "\npenstock_nodes" not in exposition(Snapshot(0.0, 2, "Llf()"))


def test_latency_is_a_histogram_whose_buckets_grow_up_to_all_rows(snapshot: Snapshot) -> None:
    text = exposition(snapshot)
    found = re.findall(
        r'penstock_latency_seconds_bucket\{pipeline="heat",sink="alarms",le="([^"]+)"\} (\S+)', text
    )
    assert [bound for bound, _ in found] == [*(f"{each:g}" for each in BUCKETS), "+Inf"]
    counts = [float(count) for _, count in found]
    assert counts == sorted(counts)
    assert (counts[1], counts[4]) == (0.0, counts[-1])  # each row of the fake took 0.13 to 0.56 s
    assert 0 < counts[2] < counts[-1] == snapshot.latencies["heat.alarms"].count
    assert f'penstock_latency_seconds_count{{pipeline="heat",sink="alarms"}} {counts[-1]:.0f}\n' in text
    assert text.count("# TYPE penstock_latency_seconds histogram\n") == 1
    assert text.count("# TYPE penstock_latency_seconds") == 1


def test_names_end_in_what_they_are(snapshot: Snapshot) -> None:
    for metric in METRICS:
        assert (metric.kind == "counter") is metric.name.endswith("_total")
        assert metric.help.endswith(".")
    assert len(NAMES) == len(METRICS)


def test_a_label_with_a_quote_is_escaped() -> None:
    from penstock.measure.alerts import BudgetSeen

    text = exposition(Snapshot(0.0, 2, "Llf()", budgets=(BudgetSeen('a "b"\\\n', 0.5),)))
    assert 'penstock_privacy_budget_spent_ratio{product="a \\"b\\"\\\\\\n"} 0.5\n' in text


@pytest.mark.parametrize("file", ["grafana.json", "prometheus-alerts.yml"])
def test_the_files_for_grafana_and_prometheus_name_metrics_that_exist(file: str) -> None:
    text = (DOCS / file).read_text()
    if file.endswith(".json"):
        text = json.dumps(json.loads(text))
    named = set(re.findall(r"penstock_[a-z0-9_]+", text))
    assert named
    assert named <= NAMES | FAMILIES


def test_the_documentation_lists_every_metric() -> None:
    assert set(re.findall(r"`(penstock_[a-z0-9_]+)`", (DOCS / "watch.md").read_text())) == FAMILIES
