from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from penstock.simulate import SimulationError, TurnCost
from penstock.simulate.costs import IN_A_ROW, Chance, fitted


def test_chance_is_that_of_the_turns_that_were_measured_with_their_pauses() -> None:
    # One turn in a hundred takes five times as long, as no gamma distribution of that spread has it.
    turns = [(100, 1, 0.5 if number % 100 == 99 else 0.1) for number in range(400)]
    cost = fitted(turns)
    chance = Chance(cost, np.random.default_rng(1))
    drawn = [chance.factor(0.0) for _ in range(40_000)]
    assert np.mean(drawn) == pytest.approx(1.0, abs=0.02)
    assert np.mean(np.array(drawn) > 4.0) == pytest.approx(0.01, rel=0.15)


def test_turns_that_were_slow_together_stay_together() -> None:
    turns = [(100, 1, 0.3 if number % 100 < 20 else 0.1) for number in range(1000)]
    cost = fitted(turns)
    chance = Chance(cost, np.random.default_rng(2))
    slow = [chance.factor(0.0) > 1.5 for _ in range(800 * IN_A_ROW)]
    after_slow = [then for now, then in pairwise(slow) if now]
    assert np.mean(slow) == pytest.approx(0.2, abs=0.03)
    assert np.mean(after_slow) > 0.7


def test_a_turn_has_the_factor_of_the_measured_one_next_to_it_in_time() -> None:
    seconds = {10.0: 0.1, 11.0: 0.4, 12.0: 0.1}
    cost = fitted((100, 1, each) for each in seconds.values())
    cost = cost.meeting((at, 100, 1, each) for at, each in seconds.items()).since(10.0)
    chance = Chance(cost, np.random.default_rng(1))
    assert [chance.factor(now) for now in (0.0, 0.4, 0.6, 1.4, 1.6, 2.0)] == pytest.approx(
        [0.5, 0.5, 2.0, 2.0, 0.5, 0.5]
    )
    drawn = [chance.factor(3.0) for _ in range(3000)]
    assert set(np.round(drawn, 6)) == {0.5, 2.0}, "after the last one it is drawn"
    assert np.mean(drawn) == pytest.approx(1.0, abs=0.05)


def test_a_turn_that_closes_windows_meets_the_nearest_that_did() -> None:
    turns = [(1.0, 100, 1, 0.1), (2.0, 100, 1, 0.3), (3.0, 100, 1, 0.1), (4.0, 100, 1, 0.5)]
    cost = fitted((rows, slots, seconds) for _, rows, slots, seconds in turns)
    # A result in the second turn and one in the last; one between two turns is none of theirs.
    chance = Chance(cost.meeting(turns, results=[2.2, 2.9, 4.4]), np.random.default_rng(1))
    met = [chance.factor(now, closes=True) for now in (2.0, 2.9, 3.1, 4.0)]
    assert met == pytest.approx([1.2, 1.2, 2.0, 2.0])
    assert [chance.factor(now) for now in (1.0, 1.9, 2.1, 3.0)] == pytest.approx([0.4] * 4)
    drawn = {round(chance.factor(9.0, closes=True), 6) for _ in range(100)}
    assert drawn == {1.2, 2.0}


def test_without_a_turn_that_closed_windows_all_are_met() -> None:
    cost = fitted([(100, 1, 0.1), (100, 1, 0.3)]).meeting([(1.0, 100, 1, 0.1), (2.0, 100, 1, 0.3)], [9.0])
    chance = Chance(cost, np.random.default_rng(1))
    assert [chance.factor(now, closes=True) for now in (1.0, 2.0)] == pytest.approx([0.5, 1.5])


def test_moments_must_be_those_of_the_factors() -> None:
    with pytest.raises(SimulationError) as error:
        TurnCost(0.1, factors=(1.0, 1.0), moments=(3.0,))
    assert str(error.value) == (
        "every factor of a turn must have its moment, got 2 factors and 1 moments: none could be met again"
    )
