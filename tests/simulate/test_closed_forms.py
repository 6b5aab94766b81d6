"""Queues of which the mean is known, simulated with several seeds: it lies in their confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

import pytest
from tests.simulate.plants import SEEDS, mean_sojourn, one_stage, over_seeds, pool, simulated

from penstock.model import BulkService, GIGk, MMk, PoolMember, SharedPool
from penstock.scheduling.stage_view import StageView
from penstock.simulate import Inflow, Plant, Renewal, StageSetup, TurnCost


@pytest.mark.parametrize(("slots", "rate"), [(1, 0.6), (2, 1.4), (5, 3.5)])
def test_rows_served_singly_are_m_m_k(slots: int, rate: float) -> None:
    plant = one_stage(TurnCost(1.0, scv=1.0), Renewal(rate), lanes=slots)
    found = over_seeds(lambda seed: mean_sojourn(plant, slots, 1500.0 / rate, seed=seed))
    assert found.holds(MMk(rate, 1.0).sojourn_seconds(slots))
    assert found.half < 0.4 * found.mean


@pytest.mark.parametrize("scv", [0.0, 0.5, 3.0])
def test_other_service_times_are_m_g_1(scv: float) -> None:
    plant = one_stage(TurnCost(1.0, scv=scv), Renewal(0.6), lanes=1)
    found = over_seeds(lambda seed: mean_sojourn(plant, 1, 2500.0, seed=seed))
    assert found.holds(GIGk(0.6, 1.0, service_scv=scv).sojourn_seconds(1))


def test_even_arrivals_are_d_m_1() -> None:
    rate, sigma = 0.7, 0.5
    for _ in range(200):
        sigma = exp(-(1.0 - sigma) / rate)
    plant = one_stage(TurnCost(1.0, scv=1.0), Renewal(rate, scv=0.0), lanes=1)
    found = over_seeds(lambda seed: mean_sojourn(plant, 1, 2500.0, seed=seed))
    assert found.holds(1.0 / (1.0 - sigma))


def test_several_slots_with_other_arrivals_and_services_are_about_gi_g_k() -> None:
    plant = one_stage(TurnCost(1.0, scv=0.5), Renewal(2.4, scv=2.0), lanes=3)
    found = over_seeds(lambda seed: mean_sojourn(plant, 3, 1000.0, seed=seed))
    assert found.holds(GIGk(2.4, 1.0, 2.0, 0.5).sojourn_seconds(3), slack=0.1)


@pytest.mark.parametrize(
    ("rate", "fixed", "per_row", "slots"),
    [(1000.0, 0.1, 0.0005, 1), (10.0, 0.1, 0.05, 1), (0.1, 0.1, 0.1, 1), (3.0, 0.3, 0.9, 3)],
)
def test_turns_that_take_all_that_waits_are_bulk_service(
    rate: float, fixed: float, per_row: float, slots: int
) -> None:
    plant = one_stage(TurnCost(fixed, per_row), Renewal(rate), slots=slots)
    seconds = min(3000.0 / rate, 3000.0)
    # Without a grain: cut to one, turns of a second have too few rows for their fixed cost at such a load.
    found = over_seeds(lambda seed: mean_sojourn(plant, slots, seconds, seed=seed, grain_seconds=inf))
    assert found.holds(BulkService(rate, fixed, per_row).sojourn_seconds(slots), slack=0.1)


@pytest.mark.parametrize(("count", "rate", "slots"), [(8, 3.0, 2), (4, 10.0, 3), (8, 0.5, 1)])
def test_stages_that_share_slots_are_a_shared_pool(count: int, rate: float, slots: int) -> None:
    model = SharedPool(tuple(PoolMember(f"s{n}", rate, 0.1, 0.01) for n in range(count)))
    plant = pool(count, TurnCost(0.1, 0.01), rate)
    found = over_seeds(lambda seed: mean_sojourn(plant, slots, 500.0 / count, seed=seed))
    assert found.holds(model.stage_seconds("s0", slots), slack=0.15)


@dataclass(frozen=True)
class ByDepth:
    """The class with the least depth first, whatever waits."""

    def priority(self, stage: StageView, now: float) -> float:
        return float(stage.depth)

    def reason(self, stage: StageView) -> str:
        return f"class {stage.depth}"


def test_two_classes_on_one_slot_wait_as_cobham_says() -> None:
    rates = (0.3, 0.4)
    stages = tuple(
        StageSetup(f"p.{n}", "p", TurnCost(1.0, scv=1.0), (f"in{n}",), sink=f"out{n}", depth=n, lanes=1)
        for n in range(2)
    )
    plant = Plant(stages, tuple(Inflow(f"in{n}", Renewal(rate)) for n, rate in enumerate(rates)))
    # W_0 = sum(lambda E[S^2])/2 = sum(lambda); a class waits W_0 / ((1 - load before) (1 - load with it)).
    waiting = sum(rates)
    expected = (waiting / (1 - 0.3) + 1.0, waiting / ((1 - 0.3) * (1 - 0.7)) + 1.0)
    runs = [simulated(plant, 1, 2000.0, ByDepth(), seed=seed).sinks for seed in range(SEEDS)]
    for number in range(2):
        found = over_seeds(lambda seed, n=number: runs[seed][f"p.out{n}"].latency.mean)
        assert found.holds(expected[number])
    assert expected[1] > 2 * expected[0]
