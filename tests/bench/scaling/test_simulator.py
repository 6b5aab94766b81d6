"""The simulator's part of the bench, without real runs."""

from __future__ import annotations

import pytest

from penstock.bench.result import BenchResult
from penstock.bench.scaling.simulator import (
    job_cost,
    of_large_cluster,
    speed,
    tenants_delays,
    tenants_errors,
)
from penstock.bench.tenants.load import Load
from penstock.bench.tenants.runs import JobRun, Run
from penstock.scheduling.policies import Llf
from penstock.simulate import TurnCost
from penstock.simulate.tenants import TenantsSettings, simulated_tenants
from penstock.workloads.tenants.groups import bulk_jobs, urgent_jobs

JOBS = (*urgent_jobs(2), *bulk_jobs(60_000.0, 2))


def measured_as(fixed_seconds: float, told_fixed_seconds: float) -> Run:
    """A run whose latencies are those of one cost, and whose turns tell of another."""
    costs = {group: TurnCost(fixed_seconds, 2e-6) for group in ("urgent", "bulk")}
    real = simulated_tenants(JOBS, costs, TenantsSettings(Llf(), 5.0, 20.0))
    turns = tuple((30.0, rows, 1, told_fixed_seconds + 2e-6 * rows) for rows in (1000, 5000, 20_000))
    jobs = tuple(JobRun(job, tuple(real.samples(job.name)), 0.0, 0.0, (), (), turns) for job in JOBS)
    return Run("ours", Load(JOBS), 2, jobs, 0.0, 0.0, (), 0.0, 5.0, 20.0)


def test_a_run_simulated_from_its_own_costs_is_met_and_from_others_is_not() -> None:
    same, other = (tenants_errors(measured_as(0.08, told), seeds=1) for told in (0.08, 0.25))
    assert set(same) == {"urgent_p50", "urgent_p99", "bulk_p50", "bulk_p99"}
    # Those of bulk turn on ties here, which the last digit of a cost decides.
    assert max(same["urgent_p50"], same["urgent_p99"]) < 0.1
    assert other["urgent_p50"] > 0.3


def test_events_a_second_are_counted_over_the_time_they_took() -> None:
    result = BenchResult("scaling")
    speed(result, runs=1, seconds=10.0)
    assert result.figures["simulator_events_per_s"] > 0
    part = of_large_cluster(60.0, stages=400, nodes=40)
    # 10 turns a second: each has a grant, an end, and what it brought.
    assert part.events == pytest.approx(60 * 10 * 4, rel=0.3)


def test_what_a_job_costs_is_learned_after_the_warm_up_and_all_its_turns_are_met_again() -> None:
    turns = ((1.0, 1000, 1, 0.9), (6.0, 1000, 1, 0.1), (7.0, 2000, 1, 0.2), (8.0, 1000, 1, 0.1))
    job = JobRun(JOBS[0], (), 0.0, 0.0, (), (), turns)
    cost = job_cost(job, warmup=5.0)
    assert cost is not None
    assert cost.mean_seconds(1000, 1) == pytest.approx(0.1)
    assert cost.moments == (1.0, 6.0, 7.0, 8.0)
    assert cost.factors == pytest.approx((9.0, 1.0, 1.0, 1.0))
    assert job_cost(job, warmup=10.0) is None


def test_the_time_between_messages_turns_and_results_is_read_from_a_run() -> None:
    turns = tuple((second + 0.02, 1000, 1, 0.1) for second in range(5, 9))
    fed = tuple((float(second), 0, second + 0.012) for second in range(5, 9))
    samples = tuple((float(second), 0.115, False) for second in range(5, 9))
    job = JobRun(JOBS[0], samples, 0.0, 0.0, (), (), turns, fed)
    found = tenants_delays(Run("ours", Load(JOBS), 2, (job,), 0.0, 0.0, (), 0.0, 5.0, 20.0))
    assert (found.look, found.shown) == pytest.approx((0.008, 0.005))
