"""The workload of `bench share`, simulated: figures as of a real run, from given costs."""

from __future__ import annotations

import pytest

from penstock.simulate import SimulationError, TurnCost
from penstock.simulate.share import ShareSettings, costs_of, created_of, share_errors, simulated_share

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
    first, again, other = (simulated_share(COSTS, ShareSettings(60.0, 10.0, seed=seed)) for seed in (1, 1, 2))
    assert set(share_errors(first, again).values()) == {0.0}
    assert max(share_errors(first, other).values()) > 0.0
    costs = costs_of(first)
    assert costs["bulky-2"].mean_seconds(100_000, 1) == pytest.approx(0.25, rel=0.1)
    created = created_of(first)
    replayed = simulated_share(costs, ShareSettings(60.0, 10.0, seed=3, created=created))
    assert share_errors(first, replayed)["urgent_p50"] < 0.15


def test_more_slots_are_quicker_and_turns_twice_as_long_slower() -> None:
    slow = {name: TurnCost(2 * cost.fixed_seconds, 2 * cost.row_seconds) for name, cost in COSTS.items()}
    p99 = [
        simulated_share(costs, ShareSettings(60.0, 10.0, slots=slots)).group("urgent").p99
        for costs, slots in ((COSTS, 8), (COSTS, 2), (slow, 2))
    ]
    assert p99[0] < p99[1] < p99[2]


def test_a_pipeline_without_a_cost_is_refused() -> None:
    with pytest.raises(SimulationError) as error:
        simulated_share({"urgent": COSTS["urgent"]}, ShareSettings(10.0, 1.0))
    assert str(error.value) == (
        "pipeline 'bulky-1' must have a cost, of its own or of its group, got ['urgent']: "
        "its turns would take no time"
    )
