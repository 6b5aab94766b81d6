"""What a look at an engine finds."""

from __future__ import annotations

import json

import pytest
from tests.dashboard.fakes import BEGIN, FakeEngine

from penstock.dashboard.collector import Collector
from penstock.dashboard.delta import applied, difference
from penstock.dashboard.history import news_json


@pytest.fixture
def collector(engine: FakeEngine) -> Collector:
    return Collector(engine)


def alerts(collector: Collector, engine: FakeEngine) -> list[tuple[str, str]]:
    found = collector.look(engine.now).snapshot.alerts
    return [(alert.kind, alert.subject) for alert in found if alert.kind != "disk"]


def test_a_look_tells_of_every_stage_sink_tenant_and_pipeline(
    collector: Collector, engine: FakeEngine
) -> None:
    engine.advance(10)
    seen = collector.look(engine.now).snapshot
    assert [each.name for each in seen.stages] == [
        "heat.parse",
        "heat.warm",
        "heat.archive",
        "heat.per second",
        "heat.alarm",
        "usage.clean",
        "usage.hourly",
    ]
    assert [each.name for each in seen.sinks] == ["heat.archive", "heat.alarms", "usage.ledger"]
    assert [each.name for each in seen.tenants] == ["plant", "billing"]
    assert {each.name: each.state for each in seen.pipelines} == {"heat": "running", "usage": "running"}
    warm = next(each for each in seen.stages if each.name == "heat.warm")
    assert (warm.turns, warm.operators, warm.target_seconds) == (20, ("warm",), 0.8)
    [heat, _] = seen.pipelines
    assert ("source:readings", "heat.parse", "heat.readings", False) in heat.edges
    assert ("heat.alarm", "sink:alarms", "", False) in heat.edges


def test_turns_and_changes_are_told_once(collector: Collector, engine: FakeEngine) -> None:
    engine.advance(1)
    engine.change("slots", "the pool", "3", "utilisation 0.91 over 0.70")
    first = collector.look(engine.now)
    assert len(first.turns) == 14
    assert [each.became for each in first.changes] == ["3"]
    second = collector.look(engine.now)
    assert (second.turns, second.changes) == ((), ())


def test_latency_is_that_of_the_last_minute(collector: Collector, engine: FakeEngine) -> None:
    engine.slow = 20.0
    for _ in range(10):
        engine.advance(2)
        collector.look(engine.now)
    engine.slow = 1.0
    for _ in range(35):
        engine.advance(2)
        news = collector.look(engine.now)
    alarms = next(each for each in news.snapshot.sinks if each.name == "heat.alarms")
    assert alarms.p99 < 0.6
    assert alarms.in_time == 1.0
    assert alarms.results_in_time < alarms.results
    assert {point.sink for point in news.points} == {"heat.archive", "heat.alarms", "usage.ledger"}


def test_a_missed_target_is_an_alert_and_ends_when_it_is_kept_again(
    collector: Collector, engine: FakeEngine
) -> None:
    engine.slow = 20.0
    collector.look(engine.now)
    engine.advance(6)
    assert alerts(collector, engine) == [("target", "heat.alarms")]
    engine.set_latency("heat", "alarms", "30s")
    assert alerts(collector, engine) == []


def test_a_stage_that_stops_moving_is_told_within_ten_seconds(
    collector: Collector, engine: FakeEngine
) -> None:
    engine.advance(5)
    collector.look(engine.now)
    stopped_at = engine.now
    engine.meters["heat.warm"].queue_changed(700, engine.now, arrived=700)
    while not alerts(collector, engine):
        engine.now += 3.0
        assert engine.now <= stopped_at + 10
    assert alerts(collector, engine) == [("stuck", "heat.warm")]


def test_a_turn_that_does_not_end_is_told_within_ten_seconds(
    collector: Collector, engine: FakeEngine
) -> None:
    engine.advance(5)
    engine.turn_since["heat.warm"] = engine.now
    stopped_at = engine.now
    while not alerts(collector, engine):
        engine.now += 3.0
        assert engine.now <= stopped_at + 10
    assert alerts(collector, engine) == [("stuck", "heat.warm")]


@pytest.mark.parametrize("reason", ["paused", "in line"])
def test_a_stage_that_is_paused_or_stands_in_line_within_its_target_is_not_stuck(
    collector: Collector, engine: FakeEngine, reason: str
) -> None:
    engine.advance(5)
    collector.look(engine.now)
    engine.meters["usage.clean"].queue_changed(700, engine.now, arrived=700)
    if reason == "paused":
        engine.pause("usage")
    else:
        engine.in_line = frozenset({"usage.clean"})
    for _ in range(5):
        engine.now += 3.0
        assert alerts(collector, engine) == []


def test_a_stage_that_stands_in_line_for_over_a_minute_is_stuck(
    collector: Collector, engine: FakeEngine
) -> None:
    engine.advance(5)
    collector.look(engine.now)
    engine.meters["heat.warm"].queue_changed(700, engine.now, arrived=700)
    engine.in_line = frozenset({"heat.warm"})
    collector.look(engine.now)
    engine.now += 61.0
    assert alerts(collector, engine) == [("stuck", "heat.warm")]


def test_a_stage_that_stands_in_line_beyond_twice_its_target_is_a_warning_within_ten_seconds(
    collector: Collector, engine: FakeEngine
) -> None:
    engine.advance(5)
    collector.look(engine.now)
    stopped_at = engine.now
    for name in ("heat.warm", "usage.clean"):
        engine.meters[name].queue_changed(700, engine.now, arrived=700)
    engine.in_line = frozenset({"heat.warm", "usage.clean"})
    while not alerts(collector, engine):
        engine.now += 3.0
        assert engine.now <= stopped_at + 10
    assert alerts(collector, engine) == [("slow", "heat.warm")]


def test_a_source_whose_broker_is_away_is_told_within_ten_seconds_though_nothing_waits(
    collector: Collector, engine: FakeEngine
) -> None:
    engine.advance(5)
    engine.away = frozenset({"heat.readings"})
    assert alerts(collector, engine) == []
    gone_at = engine.now
    while not alerts(collector, engine):
        engine.now += 3.0
        assert engine.now <= gone_at + 10
    assert alerts(collector, engine) == [("away", "heat.readings")]
    engine.away = frozenset()
    assert alerts(collector, engine) == []


def test_nodes_are_told_where_there_is_a_cluster(collector: Collector, engine: FakeEngine) -> None:
    assert collector.look(engine.now).use.nodes is None
    engine.pool_nodes = 3
    news = collector.look(engine.now)
    assert (news.use.nodes, news.snapshot.to_json()["engine"]["nodes"]) == (3, 3)
    assert news_json(news)["uses"][-1][3] == 3


def test_a_pipeline_that_goes_on_after_a_pause_is_not_stuck_at_once(
    collector: Collector, engine: FakeEngine
) -> None:
    engine.advance(5)
    engine.pause("heat")
    engine.meters["heat.warm"].queue_changed(700, engine.now, arrived=700)
    for _ in range(10):
        engine.now += 3.0
        collector.look(engine.now)
    engine.resume("heat")
    engine.now += 1.0
    assert alerts(collector, engine) == []


def test_a_failed_pipeline_is_an_alert_at_once(collector: Collector, engine: FakeEngine) -> None:
    engine.pipelines["usage"] = "failed"
    engine.errors["usage"] = ValueError("operator 'clean' raised")
    [alert] = [each for each in collector.look(engine.now).snapshot.alerts if each.kind == "failed"]
    assert (alert.subject, alert.reason) == ("usage", "it has stopped: operator 'clean' raised")


def test_the_state_is_plain_json_and_little_of_it_changes_while_nothing_runs(
    collector: Collector, engine: FakeEngine
) -> None:
    engine.advance(5)
    before = json.loads(json.dumps(collector.look(engine.now).snapshot.to_json()))
    engine.now += 1
    after = json.loads(json.dumps(collector.look(engine.now).snapshot.to_json()))
    change = difference(before, after)
    assert applied(before, change) == after
    assert set(change) <= {"engine", "pipelines", "stages", "tenants", "disks"}
    assert len(json.dumps(change)) < len(json.dumps(after)) / 2
    assert before["engine"]["started_at"] == 0.0
    assert engine.now > BEGIN
