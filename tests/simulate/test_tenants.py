"""The workload of `bench tenants`, simulated from given costs."""

from __future__ import annotations

from statistics import fmean, median

import pytest
from tests.simulate.plants import one_stage

from penstock.scheduling import AtMost
from penstock.scheduling.policies import Fifo, Llf, Policy
from penstock.simulate import Simulation, SimulationError, SimulationSettings, Ticks, TurnCost, WindowSetup
from penstock.simulate.station import Turn
from penstock.simulate.tenants import TenantsSettings, simulated_tenants
from penstock.workloads.tenants.groups import bulk_jobs, urgent_jobs

JOBS = (*urgent_jobs(2), *bulk_jobs(60_000.0, 2))
COSTS = {"urgent": TurnCost(0.08, 2e-6, 0.05), "bulk": TurnCost(0.1, 2e-5, 0.05)}


def test_every_window_of_every_job_has_a_sample_and_urgent_ones_are_in_time_by_laxity() -> None:
    run = simulated_tenants(JOBS, COSTS, TenantsSettings(Llf(), 5.0, 20.0))
    for job in JOBS:
        samples = run.samples(job.name)
        assert len(samples) == pytest.approx(20 / job.window_seconds, abs=1)
        assert all(latency > 0.0 for _, latency, _ in samples)
    urgent = sorted(latency for job in JOBS[:2] for latency in run.latencies(job.name))
    assert urgent[len(urgent) // 2] < 0.4
    assert sum(latency <= 0.8 for latency in urgent) / len(urgent) > 0.9


def test_a_turn_takes_whole_messages_and_no_more_than_it_was_granted() -> None:
    turns: list[Turn] = []
    plant = one_stage(
        TurnCost(0.05, 5e-5), Ticks(30_000.0, 1.0), window=WindowSetup(1.0, 1.0), latency_seconds=7200.0
    )
    settings = SimulationSettings.on_slots(Llf(), 1, consumption=AtMost(70_000), on_turn=turns.append)
    Simulation(plant, settings).run(20.0)
    assert all(turn.taken.rows.count % 30_000 == 0 for turn in turns)
    assert max(turn.taken.rows.count for turn in turns) <= 60_000


def test_in_order_of_arrival_urgent_results_are_later() -> None:
    def urgent_seconds(policy: Policy) -> float:
        run = simulated_tenants(JOBS, COSTS, TenantsSettings(policy, 5.0, 60.0))
        return fmean(latency for job in JOBS[:2] for latency in run.latencies(job.name))

    assert urgent_seconds(Fifo()) > 1.2 * urgent_seconds(Llf())


def test_messages_that_are_fed_late_have_late_results() -> None:
    costs = {group: TurnCost(each.fixed_seconds, each.row_seconds) for group, each in COSTS.items()}
    plain = simulated_tenants(JOBS[:1], costs, TenantsSettings(Llf(), 5.0, 20.0))
    fed = {"urgent-1": [(each.due, each.source, each.due + 0.05) for each in plain.messages["urgent-1"]]}
    late = simulated_tenants(JOBS[:1], costs, TenantsSettings(Llf(), 5.0, 20.0, fed=fed))
    pairs = zip(plain.latencies("urgent-1"), late.latencies("urgent-1"), strict=True)
    assert [after - before for before, after in pairs] == pytest.approx([0.05] * 20, abs=0.002)


def test_a_job_without_a_cost_is_refused() -> None:
    with pytest.raises(SimulationError) as error:
        simulated_tenants(JOBS, {"bulk": COSTS["bulk"]}, TenantsSettings(Llf(), 1.0, 1.0))
    assert str(error.value) == (
        "job 'urgent-1' must have a cost, of its own or of its group, got ['bulk']: "
        "its turns would take no time"
    )


def test_where_slots_are_idle_bulk_results_leave_sooner_if_windows_are_known() -> None:
    jobs = (*urgent_jobs(2), *bulk_jobs(60_000.0, 2))
    costs = {"urgent": TurnCost(0.03, 3e-6), "bulk": TurnCost(0.09, 3e-6)}
    with_semantics, without = (
        median(simulated_tenants(jobs, costs, TenantsSettings(policy, 5.0, 30.0)).latencies("bulk-1"))
        for policy in (Llf(), Llf(semantics=False))
    )
    assert without > 1.15 * with_semantics
