from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from penstock.simulate.costs import IN_A_ROW, Chance, fitted


def test_chance_is_that_of_the_turns_that_were_measured_with_their_pauses() -> None:
    # One turn in a hundred takes five times as long, as no gamma distribution of that spread has it.
    turns = [(100, 1, 0.5 if number % 100 == 99 else 0.1) for number in range(400)]
    cost = fitted(turns)
    chance = Chance(cost.scv, np.random.default_rng(1), cost.factors)
    drawn = [chance.factor() for _ in range(40_000)]
    assert np.mean(drawn) == pytest.approx(1.0, abs=0.02)
    assert np.mean(np.array(drawn) > 4.0) == pytest.approx(0.01, rel=0.15)


def test_turns_that_were_slow_together_stay_together() -> None:
    turns = [(100, 1, 0.3 if number % 100 < 20 else 0.1) for number in range(1000)]
    cost = fitted(turns)
    chance = Chance(cost.scv, np.random.default_rng(2), cost.factors)
    slow = [chance.factor() > 1.5 for _ in range(800 * IN_A_ROW)]
    after_slow = [then for now, then in pairwise(slow) if now]
    assert np.mean(slow) == pytest.approx(0.2, abs=0.03)
    assert np.mean(after_slow) > 0.7
