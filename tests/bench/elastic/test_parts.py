"""The pieces of the parts that need no cluster."""

from __future__ import annotations

import sys
from typing import Any, cast

import pytest

from penstock import sinks, sources
from penstock.bench.elastic.driver_worker import place_of
from penstock.bench.elastic.efficiency import curve
from penstock.bench.elastic.kills import recovery_seconds
from penstock.bench.elastic.pred_nodes import held_rate
from penstock.bench.elastic.pred_worker import SERVICE_SECONDS, emulated_pred
from penstock.bench.elastic.scale import SCENARIOS, Scale
from penstock.bench.riot.steps import Curve, Step
from penstock.pipeline.nodes import Operator
from penstock.plan.elastic import FixedNodes
from penstock.simulate import TurnCost
from penstock.workloads.riot.topologies import topology


def test_static_replicas_are_as_busy_at_the_peak_as_the_scale_says() -> None:
    scale = Scale()
    for name, seconds in scale.service.items():
        assert 10 * scale.peak * seconds / scale.replicas[name] == pytest.approx(scale.peak_share)


def test_each_scenario_starts_with_the_nodes_it_needs() -> None:
    scale = Scale()
    assert {name: scale.first_nodes(name) for name in SCENARIOS} == {
        "static": 16,
        "operators": 16,
        "nodes": 8,
        "model": 3,
    }
    assert scale.managers("static") is None
    operators = scale.managers("operators")
    assert operators is not None
    assert isinstance(operators.region_policy, FixedNodes)
    assert operators.periods.operator_seconds == pytest.approx(7.5)


def test_a_scale_comes_back_from_what_a_driver_is_told() -> None:
    assert Scale(**Scale(minute=3.0).to_json()) == Scale(minute=3.0)


def test_a_backlog_that_never_comes_down_counts_until_the_next_kill() -> None:
    waiting = [(t / 4, 5 if t < 40 else 80) for t in range(120)]
    assert recovery_seconds(waiting, kill=10.0, until=25.0) == 15.0


def test_a_backlog_must_stay_down_to_count() -> None:
    rows = [5, 5, 5, 5, 90, 4, 90, 90, *[4] * 20]
    waiting = [(float(t) / 2, each) for t, each in enumerate(rows)]
    assert recovery_seconds(waiting, kill=2.0, until=14.0) == 2.0


def test_nodes_bring_more_until_the_driver_is_full() -> None:
    found = dict(curve(TurnCost(0.1), 0.9, driver=30.0))
    assert found[2] == pytest.approx(2 * found[1], rel=0.03)
    assert found[10] == pytest.approx(10.0, rel=0.03)
    assert found[1000] == pytest.approx(30.0, rel=0.05)


def test_a_thread_without_a_turn_has_no_place() -> None:
    assert place_of(sys._getframe()) == ""


def test_where_no_rate_is_held_the_rival_has_the_least_that_was_tried() -> None:
    failed = Curve((Step(8.0, 3.0, 4.0, 3.0, 3.0, 1.0), Step(2.0, 2.0, 4.0, 2.0, 2.0, 1.0)))
    assert (held_rate(failed, "plain"), held_rate(failed, "pool")) == (2.0, 0.0)


def test_every_operator_of_pred_waits_beside_what_it_does() -> None:
    spool = sources.FromSpool(cast(Any, None), topology("pred").schema)
    made = emulated_pred(spool, sinks.Callback(lambda table, batch: None), {"publish": 3})
    plain = topology("pred").declare(spool, publish=sinks.Console(), instances={"publish": 3})
    operators = {name: each for name, each in made.nodes.items() if isinstance(each, Operator)}
    assert set(operators) == set(SERVICE_SECONDS)
    for name, each in operators.items():
        before = plain.nodes[name]
        assert isinstance(before, Operator)
        assert (each.inputs, each.parallelism) == (before.inputs, before.parallelism)
        assert each.function is not before.function
