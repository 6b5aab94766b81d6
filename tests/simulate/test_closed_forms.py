"""Queues of which the mean is known, simulated with several seeds: it lies in their confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, exp, inf, log1p

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


def gi_m_k(rate: float, scv: float, slots: int) -> float:
    """The mean sojourn of gamma arrivals and exponential services of mean 1, exactly (Takacs, 1962)."""

    def transform(at: float) -> float:
        return exp(-log1p(scv * at / rate) / scv)

    sigma = 0.5
    for _ in range(2000):
        sigma = transform(slots * (1.0 - sigma))
    total, product = 1.0 / (1.0 - sigma), 1.0
    for number in range(1, slots + 1):
        open_share = 1.0 - transform(number)
        product *= (1.0 - open_share) / open_share
        part = (slots * open_share - number) / (slots * (1.0 - sigma) - number)
        total += comb(slots, number) / (product * open_share) * part
    return 1.0 + 1.0 / (total * slots * (1.0 - sigma) ** 2)


@pytest.mark.parametrize(("slots", "rate", "scv"), [(2, 1.4, 0.5), (3, 2.4, 2.0), (5, 3.7, 0.2)])
def test_other_arrivals_on_several_slots_are_gi_m_k(slots: int, rate: float, scv: float) -> None:
    assert gi_m_k(rate, 1.0, slots) == pytest.approx(MMk(rate, 1.0).sojourn_seconds(slots))
    plant = one_stage(TurnCost(1.0, scv=1.0), Renewal(rate, scv=scv), lanes=slots)
    found = over_seeds(lambda seed: mean_sojourn(plant, slots, 4000.0 / rate, seed=seed))
    assert found.holds(gi_m_k(rate, scv, slots))
    assert found.half < 0.25 * found.mean


@pytest.mark.slow
@pytest.mark.parametrize("scv", [1.0, 2.0])
def test_long_runs_are_m_m_k_and_gi_m_k_within_a_tenth(scv: float) -> None:
    plant = one_stage(TurnCost(1.0, scv=1.0), Renewal(1.4, scv=scv), lanes=2)
    found = over_seeds(lambda seed: mean_sojourn(plant, 2, 12_000.0, seed=seed))
    assert found.holds(gi_m_k(1.4, scv, 2))
    assert found.half < 0.1 * found.mean


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


@pytest.mark.parametrize("slots", [1, 3])
def test_two_classes_wait_as_cobham_says(slots: int) -> None:
    rates = (0.3 * slots, 0.4 * slots)
    stages = tuple(
        StageSetup(f"p.{n}", "p", TurnCost(1.0, scv=1.0), (f"in{n}",), sink=f"out{n}", depth=n, lanes=slots)
        for n in range(2)
    )
    plant = Plant(stages, tuple(Inflow(f"in{n}", Renewal(rate)) for n, rate in enumerate(rates)))
    # W_0 is the chance that all slots are busy over k; on one slot sum(lambda E[S^2])/2, which is the same.
    # A class waits W_0 / ((1 - load before) (1 - load with it)).
    waiting = MMk(sum(rates), 1.0).waiting_share(slots) / slots
    expected = (waiting / (1 - 0.3) + 1.0, waiting / ((1 - 0.3) * (1 - 0.7)) + 1.0)
    runs = [simulated(plant, slots, 2000.0, ByDepth(), seed=seed).sinks for seed in range(SEEDS)]
    for number in range(2):
        found = over_seeds(lambda seed, n=number: runs[seed][f"p.out{n}"].latency.mean)
        assert found.holds(expected[number])
    assert expected[1] > 1.3 * expected[0]
