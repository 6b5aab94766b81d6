"""The simulator's part of the bench, without real runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.workloads.recorded import recorded_run

from penstock.bench.result import BenchResult
from penstock.bench.scaling.predicted_runs import (
    Judged,
    job_cost,
    share_judged,
    so_far,
    tenants_delays,
    tenants_judged,
)
from penstock.bench.scaling.simulator import of_large_cluster, speed, tell_errors
from penstock.bench.tenants.load import Load
from penstock.bench.tenants.meter import Turn
from penstock.bench.tenants.runs import JobRun, Run
from penstock.scheduling.policies import Llf
from penstock.simulate import TurnCost
from penstock.simulate.accuracy import Told
from penstock.simulate.share import ShareSettings, simulated_share
from penstock.simulate.tenants import TenantsSettings, simulated_tenants
from penstock.workloads.share_run import ShareRun
from penstock.workloads.tenants.groups import bulk_jobs, urgent_jobs

URGENT = (replace(each, sources=16, rows_per_second=4000) for each in urgent_jobs(2))
JOBS = (*URGENT, *bulk_jobs(60_000.0, 2))


def measured_as(fixed_seconds: float) -> Run:
    """A run in which a turn takes so long, and as its rows do."""
    costs = {group: TurnCost(fixed_seconds, 2e-6) for group in ("urgent", "bulk")}
    real = simulated_tenants(JOBS, costs, TenantsSettings(Llf(), 5.0, 20.0))
    sizes = (1000, 5000, 20_000) * 8
    turns = tuple(Turn(1.0 + at, rows, 1, fixed_seconds + 2e-6 * rows, 0.0) for at, rows in enumerate(sizes))
    jobs = tuple(JobRun(job, tuple(real.samples(job.name)), 0.0, 0.0, (), (), turns) for job in JOBS)
    return Run("ours", Load(JOBS), 2, jobs, 0.0, 0.0, (), 0.0, 5.0, 20.0)


def silent(text: str) -> None:
    """Nobody listens."""


def test_a_run_that_goes_on_is_told_up_to_now() -> None:
    run = recorded_run("penstock", 0.25)
    ended, run.ended_at = run.ended_at, None
    assert ended is not None
    assert (
        so_far(run, ended)
        == f"  urgent p50 0.25 s, p99 0.25 s of {run.group('urgent', ended).results} results"
    )
    assert run.group("urgent", ended).results > run.group("urgent", ended - 5.0).results > 0


def test_a_run_is_predicted_from_another_one_and_replayed_from_itself() -> None:
    quick, slow = measured_as(0.08), measured_as(0.25)
    met, missed = (
        {each.name: each for each in tenants_judged([before, slow], silent, seeds=1)}
        for before in (slow, quick)
    )
    assert list(met) == [f"tenants_{group}_{name}" for group in ("urgent", "bulk") for name in ("p50", "p99")]
    # Others turn on ties here, which the last digit of a cost decides.
    assert met["tenants_urgent_p50"].error < 0.2
    assert met["tenants_urgent_p50"].runs_apart == 0.0
    assert missed["tenants_urgent_p50"].error > 0.3, "of the run itself nothing is known"
    assert missed["tenants_urgent_p50"].replay_error < 0.2
    assert missed["tenants_urgent_p50"].runs_apart > 0.3


def test_a_run_of_bench_share_is_predicted_from_another_one() -> None:
    def run(factor: float, seed: int) -> ShareRun:
        costs = {"urgent": TurnCost(0.08 * factor, 2e-6, 0.02), "bulky": TurnCost(0.1, 1.5e-6, 0.02)}
        return simulated_share(costs, ShareSettings(60.0, 10.0, seed=seed))

    like, unlike = (
        {each.name: each for each in share_judged([run(factor, 1), run(1.0, 2)], silent, seeds=5)}
        for factor in (1.0, 2.0)
    )
    assert like["share_urgent_p50"].error < 0.15
    assert unlike["share_urgent_p50"].error > 0.3
    assert unlike["share_urgent_p50"].replay_error < 0.1
    assert like["share_urgent_p50"].arrivals_known_error < 0.1
    assert [each.enough for each in like.values()] == [True, True, True, False]


def test_every_run_but_the_first_is_judged_from_the_one_before_it() -> None:
    quick, slow = measured_as(0.08), measured_as(0.25)
    first, last = (
        {each.name: each for each in tenants_judged(runs, silent, seeds=1)}
        for runs in ([quick, slow, slow], [slow, slow, quick])
    )
    one = tenants_judged([slow, slow], silent, seeds=1)[0]
    assert first[one.name].predicted.samples == 2 * one.predicted.samples
    # Each is what came before the other's runs, in another order.
    for name, each in first.items():
        assert each.before.told == last[name].before.measured
        assert each.before.measured == last[name].before.told
    assert any(each.before.told != each.before.measured for each in first.values())


def told(name: str, samples: int, predicted: float) -> Judged:
    share = 0.99 if name.endswith("p99") else 0.5
    ways = (Told(name, samples, share, 1.0, each) for each in (predicted, 0.95, 1.02, 0.9))
    return Judged("share", *ways)


def test_the_largest_error_of_all_groups_counts_and_too_few_results_stand_beside_it() -> None:
    result = BenchResult("scaling")
    judged = [told("urgent_p50", 400, 1.1), told("bulky_p50", 48, 0.7), told("bulky_p99", 48, 1.9)]
    tell_errors(result, judged)
    assert result.figures == pytest.approx(
        {
            "simulator_error": 0.3,
            "simulator_error_few_results": 0.9,
            "simulator_error_arrivals_known": 0.05,
            "simulator_replay_error": 0.02,
            "measured_runs_apart": 0.1,
        }
    )
    assert list(result.marks) == ["simulator_error"]
    assert result.missed == ["simulator_error"]
    assert result.setup["simulator"]["too_few_results"] == ["share_bulky_p99"]
    shown = ["share_bulky_p99", "48 (too few)", "0.900", "1.000", "1.900", "90.0%", "5.0%", "2.0%", "10.0%"]
    assert result.tables[0].rows[2] == shown
    assert len(result.tables[0].columns) == len(shown)
    enough = BenchResult("scaling")
    tell_errors(enough, judged[:2])
    assert "simulator_error_few_results" not in enough.figures


def test_events_a_second_are_counted_over_the_time_they_took() -> None:
    result = BenchResult("scaling")
    speed(result, runs=1, seconds=10.0)
    assert list(result.figures) == [
        "simulator_events_per_s",
        "simulator_turns_per_s",
        "simulator_events_per_s_llf",
        "simulator_turns_per_s_llf",
    ]
    # 1,000 segments a second come, against some 40 turns a second at first, of three events each.
    assert result.setup["simulated_events"]["segments that came"] == pytest.approx(0.9, abs=0.02)
    ratio = result.figures["simulator_events_per_s"] / result.figures["simulator_turns_per_s"]
    assert ratio == pytest.approx(1120 / 40, rel=0.3)
    part = of_large_cluster(60.0, stages=400, nodes=40)
    # 10 turns a second: each has a grant, an end, and what it brought.
    assert part.events == pytest.approx(60 * 10 * 4, rel=0.3)


def test_what_a_job_costs_is_learned_after_the_warm_up_and_all_its_turns_are_met_again() -> None:
    seen = ((1.0, 1000, 1, 0.9), (6.0, 1000, 1, 0.1), (7.0, 2000, 1, 0.2), (8.0, 1000, 1, 0.1))
    turns = tuple(Turn(*each, predicted_seconds=0.0) for each in seen)
    job = JobRun(JOBS[0], (), 0.0, 0.0, (), (), turns)
    cost = job_cost(job, warmup=5.0)
    assert cost is not None
    assert cost.mean_seconds(1000, 1) == pytest.approx(0.1)
    assert cost.moments == (1.0, 6.0, 7.0, 8.0)
    assert cost.factors == pytest.approx((9.0, 1.0, 1.0, 1.0))
    assert job_cost(job, warmup=10.0) is None


def test_the_time_between_messages_turns_and_results_is_read_from_a_run() -> None:
    turns = tuple(Turn(second + 0.02, 1000, 1, 0.1, 0.0) for second in range(5, 9))
    fed = tuple((float(second), 0, second + 0.012) for second in range(5, 9))
    samples = tuple((float(second), 0.115, False) for second in range(5, 9))
    job = JobRun(JOBS[0], samples, 0.0, 0.0, (), (), turns, fed)
    found = tenants_delays(Run("ours", Load(JOBS), 2, (job,), 0.0, 0.0, (), 0.0, 5.0, 20.0))
    assert (found.look, found.shown) == pytest.approx((0.008, 0.005))
