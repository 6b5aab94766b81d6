"""Dealt turns, against turns that are simulated row by row."""

from __future__ import annotations

import random
from itertools import pairwise
from math import inf

import pytest

from penstock.model import DealtTurns, MMk, ModelError
from penstock.model.dealt_cost import slowest_sum

FIXED = 0.08


def simulated(stage: DealtTurns, slots: int, rows: int = 12_000, seed: int = 1) -> float:
    """The mean time of Poisson arrivals at a stage whose turn deals all that waits to its tasks."""
    chance, now, arrivals = random.Random(seed), 0.0, []
    for _ in range(rows):
        now += chance.expovariate(stage.rows_per_second)
        arrivals.append(now)
    now, first, total = 0.0, 0, 0.0
    while first < rows:
        now, last = max(now, arrivals[first]), first
        while last < rows and arrivals[last] <= now:
            last += 1
        tasks = [0.0] * slots
        for row in range(first, last):
            tasks[row % slots] += service(stage, chance)
        now += stage.fixed_seconds + max(tasks)
        total += sum(now - each for each in arrivals[first:last])
        first = last
    return total / rows


def service(stage: DealtTurns, chance: random.Random) -> float:
    scv = stage.service_scv
    return chance.gammavariate(1.0 / scv, stage.row_seconds * scv) if scv else stage.row_seconds


@pytest.mark.parametrize(("rate", "seconds"), [(6.0, 0.3), (13.0, 0.3), (5.0, 0.5), (320.0, 0.015)])
@pytest.mark.parametrize("scv", [0.0, 0.1, 1.0])
def test_it_is_near_what_simulated_turns_take(rate: float, seconds: float, scv: float) -> None:
    stage = DealtTurns(rate, FIXED, seconds, scv)
    least = int(rate * seconds * 1.2) + 1
    for slots in (least, least + 2, 2 * least):
        assert stage.sojourn_seconds(slots) == pytest.approx(simulated(stage, slots), rel=0.25), slots


def test_it_says_what_a_turn_costs_where_erlangs_formula_does_not() -> None:
    stage = DealtTurns(13.0, FIXED, 0.3, service_scv=0.1)
    real = simulated(stage, 8)
    assert stage.sojourn_seconds(8) == pytest.approx(real, rel=0.15)
    assert MMk(13.0, 1 / 0.3).sojourn_seconds(8) < 0.4 * real


def test_more_slots_never_make_it_longer_but_by_rounding() -> None:
    for scv in (0.0, 0.1, 1.0, 4.0):
        stage = DealtTurns(13.0, FIXED, 0.3, scv)
        seconds = [stage.sojourn_seconds(slots) for slots in range(4, 40)]
        assert all(then <= 1.02 * now for now, then in pairwise(seconds))
        assert stage.floor_seconds == pytest.approx(seconds[-1], rel=0.02)


def test_too_few_slots_and_no_rows_are_the_limits() -> None:
    stage = DealtTurns(10.0, FIXED, 0.3)
    assert stage.busy_slots == pytest.approx(3.0)
    assert stage.sojourn_seconds(3) == inf
    assert DealtTurns(0.0, FIXED, 0.3).sojourn_seconds(1) == pytest.approx(FIXED + 0.3)
    assert DealtTurns(0.01, FIXED, 0.3).sojourn_seconds(1) == pytest.approx(FIXED + 0.3, rel=0.01)


def test_rows_in_segments_wait_for_nothing_if_the_last_ones_are_done() -> None:
    often = DealtTurns(6.0, FIXED, 0.3, segment_seconds=0.2)
    seldom = DealtTurns(6.0, FIXED, 0.3, segment_seconds=1.0)
    assert seldom.sojourn_seconds(12) == pytest.approx(FIXED + 0.3, rel=0.02)
    assert often.sojourn_seconds(12) > 1.3 * seldom.sojourn_seconds(12)


@pytest.mark.parametrize(("count", "exact"), [(1, 1.0), (2, 1.5), (5, 137 / 60), (22, 3.6908)])
def test_the_slowest_of_some_exponential_tasks_is_a_harmonic_number(count: int, exact: float) -> None:
    assert slowest_sum(count, 1.0, 1.0).mean == pytest.approx(exact, rel=0.03)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ModelError) as error:
        DealtTurns(1.0, FIXED, 0.3, service_scv=-1.0)
    assert str(error.value) == (
        "the squared coefficient of variation of service times must be 0 or more and finite, "
        "got -1.0: no spread is less"
    )
