"""Medians, spreads, and two sides that take turns."""

import math
from collections.abc import Callable

from penstock.bench.stats import Rounds, Summary, alternating, quantile, single, summary


def test_a_summary_is_the_median_between_p10_and_p90() -> None:
    assert summary([float(number) for number in range(101)]) == Summary(50.0, 10.0, 90.0, 101)


def test_nothing_measured_is_not_a_number() -> None:
    assert math.isnan(quantile([], 0.5))
    assert summary([]).runs == 0


def test_a_single_measurement_spreads_over_nothing() -> None:
    assert single(0.02) == Summary(0.02, 0.02, 0.02, 1)


def test_two_sides_take_turns_and_each_goes_first_in_every_other_round() -> None:
    order: list[str] = []

    def side(name: str, value: float) -> Callable[[], list[float]]:
        def block() -> list[float]:
            order.append(name)
            return [value, value]

        return block

    rounds = alternating(side("a", 6.0), side("b", 2.0), 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert (rounds.all_a, rounds.all_b) == ([6.0] * 6, [2.0] * 6)
    assert rounds.ratio() == Summary(3.0, 3.0, 3.0, 3)


def test_a_ratio_s_spread_is_that_of_its_rounds() -> None:
    rounds = Rounds([[60.0], [80.0], [70.0]], [[20.0], [20.0], [35.0]])
    assert rounds.ratio() == Summary(3.5, 2.0, 4.0, 3)


def test_a_difference_s_spread_is_that_of_its_rounds() -> None:
    rounds = Rounds([[24.0], [25.0]], [[22.0], [24.0]])
    assert rounds.difference() == Summary(1.5, 1.0, 2.0, 2)
