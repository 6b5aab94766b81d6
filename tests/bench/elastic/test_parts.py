"""The pieces of the parts that need no cluster."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from penstock import sinks, sources
from penstock.bench.elastic import bench
from penstock.bench.elastic.driver_worker import check_left, place_of
from penstock.bench.elastic.efficiency import curve
from penstock.bench.elastic.kills import Killer, recoveries
from penstock.bench.elastic.pauses import Pause, pauses_of
from penstock.bench.elastic.pred_nodes import held_rate, warm_up
from penstock.bench.elastic.pred_worker import SERVICE_SECONDS, emulated_pred, instances_on
from penstock.bench.elastic.scale import SCENARIOS, Scale
from penstock.bench.elastic.stand import _beside
from penstock.bench.result import BenchResult, BenchSettings
from penstock.bench.riot.steps import Curve, Step
from penstock.bench.stats import single
from penstock.errors import PenstockError
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
    assert recoveries(waiting, [10.0], until=25.0) == [15.0]


def test_a_backlog_that_a_kill_left_behind_is_not_taken_for_what_was_before_the_next() -> None:
    waiting = [(t / 4, 5 if t < 40 or t >= 180 else 80) for t in range(240)]
    assert recoveries(waiting, [10.0, 30.0], until=55.0) == [20.0, 15.0]


def test_a_backlog_must_stay_down_to_count() -> None:
    rows = [5, 5, 5, 5, 90, 4, 90, 90, *[4] * 20]
    waiting = [(float(t) / 2, each) for t, each in enumerate(rows)]
    assert recoveries(waiting, [2.0], until=14.0) == [2.0]


def test_nodes_bring_more_until_the_driver_is_full() -> None:
    found = dict(curve(TurnCost(0.1), 0.9, driver=30.0))
    assert found[2] == pytest.approx(2 * found[1], rel=0.03)
    assert found[10] == pytest.approx(10.0, rel=0.03)
    assert found[1000] == pytest.approx(30.0, rel=0.05)


def test_a_thread_without_a_turn_has_no_place() -> None:
    assert place_of(sys._getframe()) == ""


def test_a_side_that_falls_behind_while_it_is_cold_is_warmed_up_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, asked = [0.0], []

    class Cold:
        def ask(self, do: str, **said: float) -> bool:
            # Its first step ends early, as rows were late; it is empty after a second.
            first = do == "step" and not asked
            clock[0] += 10.0 if first else said.get("settle", 1.0)
            asked.append((do, said.get("settle")))
            return True

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    warm_up(cast(Any, Cold()), 6.0, 60.0)
    assert asked == [("step", 60.0), ("drain", None), ("step", 49.0), ("drain", None)]


def test_both_sides_of_pred_have_the_instances_of_the_paper_as_far_as_there_are_nodes() -> None:
    paper = topology("pred").instances
    assert instances_on(paper, 1) == {}
    assert instances_on(paper, 2) == {name: min(count, 2) for name, count in paper.items()}
    assert instances_on(paper, 8) == dict(paper)


def test_models_plan_for_no_more_replicas_than_the_static_run_has() -> None:
    model, paper = Scale().managers("model"), Scale().managers("nodes")
    assert model is not None
    assert paper is not None
    most = [stage.most_replicas for stage in model.pipelines[0].stages]
    assert most == list(Scale().replicas.values())
    assert {stage.most_replicas for stage in paper.pipelines[0].stages} == {1_000}


def test_a_part_that_fails_is_told_and_those_beside_it_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(folder: Path, result: BenchResult, settings: BenchSettings) -> None:
        raise PenstockError("16 executors must register")

    def works(folder: Path, result: BenchResult, settings: BenchSettings) -> None:
        result.put("driver_turns_per_s", single(99.0))

    monkeypatch.setattr(bench, "PARTS", {"kills": fails, "driver": works})
    said: list[str] = []
    settings = BenchSettings(False, tmp_path / "made" / "elastic.json", say=said.append)
    result = bench.run(settings)
    assert said == ["kills", "kills failed: 16 executors must register", "driver"]
    assert result.missed == ["worker_kills", "kills_lost", "kills_doubled", "recovery_s"]
    assert result.setup["failed"] == {"kills": "PenstockError: 16 executors must register"}
    told = json.loads(settings.json.read_text())
    assert told["figures"] == {"driver_turns_per_s": 99.0}


def test_every_part_has_its_marks() -> None:
    assert set(bench.MARKS) == set(bench.PARTS)


def test_a_killer_stops_when_the_run_is_over(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text('{"at": 1}\n')
    over = threading.Event()
    over.set()
    killer = Killer(10)
    killer(cast(Any, None), tmp_path, over)
    assert killer.at == []


def test_a_run_that_fails_ends_what_happens_beside_it(tmp_path: Path) -> None:
    seen: list[bool] = []
    with (
        pytest.raises(PenstockError, match="the driver ended"),
        _beside(lambda cluster, folder, over: seen.append(over.wait(60.0)), cast(Any, None), tmp_path),
    ):
        raise PenstockError("the driver ended")
    assert seen == [True]


def test_a_driver_without_rows_left_is_no_measurement() -> None:
    check_left(1)
    with pytest.raises(PenstockError, match="rows must be left at the end, got none"):
        check_left(0)


def test_a_pause_is_told_to_the_first_results_after_it() -> None:
    turns = [{"stage": "s", "granted_at": float(t), "finished_at": t + 0.25} for t in range(20)]
    turns += [{"stage": "other", "granted_at": 10.0, "finished_at": 19.0}]
    # The first loads the state, the second its plan; the third is as usual.
    turns[11]["finished_at"] += 1.0
    turns[12]["finished_at"] += 0.5
    change = {"way": "restarted", "stage": "s", "at": 11.05, "pause_seconds": 0.2}
    assert pauses_of([change], turns) == [Pause(0.2, pytest.approx(1.7))]
    assert pauses_of([change], []) == [Pause(0.2, 0.2)]
    assert pauses_of([{"way": "next turn"}], turns) == []


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
