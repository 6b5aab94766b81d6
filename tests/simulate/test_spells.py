"""A run to come, made of spells of one that was measured."""

from __future__ import annotations

import pytest

from penstock.simulate import SimulationError, TurnCost
from penstock.simulate.spells import Part, reordered

SEEN, WANTED = Part(60.0, 180.0), Part(1060.0, 1310.0)


def slow_at(*seconds: int) -> TurnCost:
    """A turn a second, ten times as long in these seconds; the warm-up is three times as long."""
    usual = {second: 3.0 if second < SEEN.begin else 1.0 for second in range(180)}
    factors = {**usual, **dict.fromkeys(seconds, 10.0)}
    return TurnCost(0.1, scv=1.0, factors=tuple(factors.values()), moments=tuple(map(float, factors)))


def test_warm_ups_are_alike_and_what_follows_is_drawn() -> None:
    cost = reordered({"a": slow_at(100, 101)}, SEEN, WANTED, seed=1)["a"]
    assert list(cost.moments) == sorted(cost.moments)
    assert (cost.moments[0], cost.moments[59]) == (1000.0, 1059.0)
    assert set(cost.factors[:60]) == {3.0}
    assert WANTED.end - 1.0 < cost.moments[-1] < WANTED.end
    assert set(cost.factors[60:]) <= {1.0, 10.0}


def test_stages_that_were_slow_together_are_so_again_and_as_often() -> None:
    both = [reordered({"a": slow_at(100), "b": slow_at(100)}, SEEN, WANTED, seed) for seed in range(40)]
    slow = 0
    for costs in both:
        moments = [
            [at for at, factor in zip(cost.moments, cost.factors, strict=True) if factor == 10.0]
            for cost in costs.values()
        ]
        assert moments[0] == moments[1]
        slow += len(moments[0])
    assert slow / 40 == pytest.approx(250 / 110, rel=0.35)
    assert reordered({"a": slow_at(100)}, SEEN, WANTED, 3) == reordered({"a": slow_at(100)}, SEEN, WANTED, 3)


def test_a_run_that_was_too_short_tells_nothing() -> None:
    with pytest.raises(SimulationError) as error:
        reordered({"a": slow_at()}, Part(60.0, 65.0), WANTED, seed=1)
    assert str(error.value) == (
        "a run must be measured for 10 s or more to tell how another one goes, got 5 s: "
        "there would be no spell to draw"
    )
