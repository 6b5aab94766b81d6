"""The workload of `bench share`, simulated: figures as of a real run, from given costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.scheduling.policies import Fifo
from penstock.simulate import SimulationError, TurnCost
from penstock.simulate.delays import Delays
from penstock.simulate.share import (
    EPOCH,
    ShareSettings,
    costs_of,
    created_of,
    delays_in,
    share_errors,
    simulated_share,
)
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import LOADS

COSTS = {"urgent": TurnCost(0.08, 2e-6, 0.02), "bulky": TurnCost(0.1, 1.5e-6, 0.02)}


def test_a_simulated_run_tells_what_a_real_one_does() -> None:
    run = simulated_share(COSTS, ShareSettings(60.0, 10.0))
    urgent, bulky = run.group("urgent"), run.group("bulky")
    assert run.wrong_counts == []
    assert len(urgent.samples) == 4 * 60
    assert len(bulky.samples) == 4 * 6
    # A turn of its own at least, and those of others before it at worst.
    assert 0.07 < urgent.p50 < 0.3
    assert urgent.p50 < urgent.p99 < 1.0
    assert bulky.share_done > 0.97


def test_the_same_seed_leads_to_the_same_run_and_costs_are_found_again_in_it() -> None:
    # Under fifo turns are of different sizes, so that it can be told what rows cost.
    fifo = ShareSettings(60.0, 10.0, Fifo())
    first, again, other = (simulated_share(COSTS, replace(fifo, seed=seed)) for seed in (1, 1, 2))
    assert set(share_errors(first, again).values()) == {0.0}
    assert max(share_errors(first, other).values()) > 0.0
    costs = costs_of(first)
    assert costs["bulky-2"].mean_seconds(100_000, 1) == pytest.approx(0.25, rel=0.1)
    created = created_of(first)
    replayed = simulated_share(costs, replace(fifo, seed=3, created=created))
    assert share_errors(first, replayed)["urgent_p50"] < 0.15


def test_more_slots_are_quicker_and_turns_twice_as_long_slower() -> None:
    slow = {name: TurnCost(2 * cost.fixed_seconds, 2 * cost.row_seconds) for name, cost in COSTS.items()}
    p99 = [
        simulated_share(costs, ShareSettings(60.0, 10.0, slots=slots)).group("urgent").p99
        for costs, slots in ((COSTS, 8), (COSTS, 2), (slow, 2))
    ]
    assert p99[0] < p99[1] < p99[2]


CREATED = {load.name: EPOCH + 0.13 * place for place, load in enumerate(LOADS)}


def stalled(every_seconds: int = 10) -> ShareRun:
    """A run in which all turns are four times as long in one second of ten, with delays between turns."""
    moments = tuple(EPOCH + second + 0.5 for second in range(80))
    factors = tuple(4.0 if second % every_seconds == 0 else 0.667 for second in range(80))
    costs = {name: replace(each, scv=1.0, factors=factors, moments=moments) for name, each in COSTS.items()}
    delays = Delays(look=0.009, free=0.006, shown=0.004)
    return simulated_share(costs, ShareSettings(60.0, 10.0, Fifo(), created=CREATED, delays=delays))


def test_the_time_between_turns_is_found_again_in_a_run() -> None:
    found = delays_in(stalled())
    assert (found.look, found.free, found.shown) == pytest.approx((0.009, 0.006, 0.004), abs=0.0005)


def test_a_stall_that_slows_all_pipelines_together_is_met_again() -> None:
    measured = stalled()
    costs = costs_of(measured)
    known = created_of(measured)
    again = ShareSettings(60.0, 10.0, Fifo(), seed=5, created=known, delays=delays_in(measured))
    assert max(share_errors(measured, simulated_share(costs, again)).values()) < 0.03
    apart = {name: TurnCost(each.fixed_seconds, each.row_seconds, each.scv) for name, each in costs.items()}
    assert share_errors(measured, simulated_share(apart, again))["urgent_p99"] > 0.15


def test_of_several_simulated_runs_the_medians_count() -> None:
    runs = [simulated_share(COSTS, ShareSettings(20.0, 5.0, seed=seed)) for seed in range(3)]
    p50 = sorted(run.group("urgent").p50 for run in runs)
    assert share_errors(runs[0], *runs)["urgent_p50"] == pytest.approx(
        abs(p50[1] / runs[0].group("urgent").p50 - 1.0)
    )


def test_a_pipeline_without_a_cost_is_refused() -> None:
    with pytest.raises(SimulationError) as error:
        simulated_share({"urgent": COSTS["urgent"]}, ShareSettings(10.0, 1.0))
    assert str(error.value) == (
        "pipeline 'bulky-1' must have a cost, of its own or of its group, got ['urgent']: "
        "its turns would take no time"
    )
