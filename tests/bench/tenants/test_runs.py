"""What a run showed: shares in time, ratios, and wrong values that are refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.bench.tenants.made import job_run, made_run, mixed

from penstock.bench.tenants.load import Load
from penstock.bench.tenants.runs import GroupRun, Run, best_rival, latency_ratio
from penstock.errors import PenstockError
from penstock.workloads.tenants.groups import urgent_jobs

ONE, TWO = urgent_jobs(2)


def test_a_missing_result_is_not_in_time_however_short_the_run() -> None:
    group = GroupRun((job_run(ONE, [0.1, 0.2, 0.9, 0.8], missing=1), job_run(TWO, [0.3] * 4)))
    assert group.in_time == pytest.approx(6 / 8)
    assert group.missing == 1
    assert group.p50 == pytest.approx(0.3)
    assert math.isnan(GroupRun(()).in_time)


def test_a_ratio_is_of_all_results_and_its_range_that_of_the_jobs() -> None:
    rival = GroupRun((job_run(ONE, [2.0] * 3), job_run(TWO, [6.0] * 3)))
    own = GroupRun((job_run(ONE, [1.0] * 3), job_run(TWO, [1.0] * 3)))
    figure = latency_ratio(rival, own, 0.5)
    assert (figure.value, figure.low, figure.high) == (4.0, 2.0, 6.0)
    assert math.isnan(latency_ratio(rival, GroupRun((job_run(ONE, []), job_run(TWO, []))), 0.5).value)


def test_the_best_rival_is_the_quicker_at_the_share_asked_for() -> None:
    load = Load((ONE,))
    steady = made_run("fifo", load, [1.0] * 100)
    jumpy = made_run("fair", load, [0.5] * 98 + [9.0, 9.0])
    assert best_rival([steady, jumpy], 0.5) is jumpy
    assert best_rival([steady, jumpy], 0.99) is steady


def answer(wrong: list[str]) -> dict[str, Any]:
    told = {
        "samples": [[1.0, 0.5, False], [2.0, 0.9, True]],
        "offered": 10.0,
        "done": 5.0,
        "done_by_second": [5.0],
        "backlog_by_second": [1.0, 1.5, 2.0],
        "wrong": wrong,
    }
    return {
        "jobs": {"urgent-1": told},
        "scheduler_seconds": 1.0,
        "turn_seconds": 20.0,
        "cuts": [8, 2],
        "window_turns": [1],
        "feeder_lag_seconds": 0.0,
        "warmup": 1.0,
        "measured": 2.0,
    }


def test_an_answer_is_read_and_one_with_a_wrong_value_is_refused() -> None:
    run = Run.of("ours", Load((ONE,)), 2, answer([]))
    assert run.overhead_share == 0.05
    assert run.cuts_overran_share == 0.25
    assert run.urgent.backlog_growth_per_minute == pytest.approx(30.0)
    assert (run.urgent.in_time, run.urgent.missing) == (0.5, 1)
    with pytest.raises(PenstockError) as refused:
        Run.of("fair", Load((ONE,)), 2, answer(["urgent-1: the window until 3 gives 1, not 2"]))
    assert str(refused.value) == (
        "all values at the sinks must be those of the batch computation, but on side 'fair' urgent-1: the "
        "window until 3 gives 1, not 2: the figures would mean nothing"
    )


def test_a_load_comes_back_from_json_as_it_was() -> None:
    load = mixed(400_000, 8).under("llf", semantics=False)
    assert Load.from_json(load.to_json()) == load
    assert load.bulk_rows_per_second == pytest.approx(400_000)
    assert str(load.policy) == "llf(semantics=False)"
    assert mixed(1000).policy.make() == "llf"
    assert str(load.policy.make()) == "Llf(semantics=False, cost_error_seconds=0.0, seed=0)"
