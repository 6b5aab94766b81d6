"""From estimates to measurements."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model import MMk, Network, NetworkStage
from penstock.plan.fine_tuning import FineTuning, Line, line_through
from penstock.plan.slots import min_processors

seconds = st.floats(0.01, 100.0)


def test_without_a_measurement_the_estimate_stands() -> None:
    assert FineTuning().line == Line(0.0, 1.0, 0)
    assert FineTuning().line.corrected(0.3) == 0.3


def test_one_measurement_tells_a_factor() -> None:
    tuning = FineTuning()
    tuning.learn(0.2, 0.3)
    assert tuning.line.corrected(0.4) == pytest.approx(0.6)


@given(offset=st.floats(0.0, 2.0), slope=st.floats(0.2, 5.0))
def test_a_line_is_found_again(offset: float, slope: float) -> None:
    line = line_through(tuple((x, offset + slope * x) for x in (0.5, 1.0, 2.0)))
    assert line.corrected(3.0) == pytest.approx(offset + slope * 3.0)
    assert line.estimate_for(offset + slope * 0.7) == pytest.approx(0.7)


@given(pairs=st.lists(st.tuples(seconds, seconds), max_size=30))
def test_more_is_never_measured_where_less_is_estimated(pairs: list[tuple[float, float]]) -> None:
    line = line_through(tuple(pairs))
    assert line.slope > 0.0
    assert line.offset_seconds >= 0.0
    assert line.estimate_for(line.corrected(1.0)) == pytest.approx(1.0)


def test_a_flat_line_tells_a_factor_only() -> None:
    line = line_through(((1.0, 43.269903684048316), (1.0, 43.269903684048316), (0.5, 43.269903684048316)))
    assert line.offset_seconds == 0.0
    assert line.estimate_for(line.corrected(1.0)) == pytest.approx(1.0)


def test_what_is_endless_teaches_nothing() -> None:
    tuning = FineTuning()
    tuning.learn(inf, 1.0)
    tuning.learn(1.0, inf)
    tuning.learn(1.0, 0.0)
    assert tuning.line.pairs == 0


def test_what_is_long_past_is_forgotten() -> None:
    tuning = FineTuning()
    for _ in range(100):
        tuning.learn(1.0, 9.0)
    for _ in range(100):
        tuning.learn(1.0, 2.0)
    assert tuning.line.corrected(1.0) == pytest.approx(2.0)


def test_a_model_that_is_too_hopeful_leads_to_more_slots() -> None:
    network = Network((NetworkStage("match", MMk(10.0, 2.0)),))
    tuning = FineTuning()
    for slots in (6, 7, 8):
        estimate = network.sojourn_seconds({"match": slots})
        tuning.learn(estimate, 0.2 + 1.1 * estimate)
    plain, tuned = (min_processors(network, target) for target in (0.8, tuning.line.estimate_for(0.8)))
    assert plain.total < tuned.total
    assert 0.2 + 1.1 * tuned.sojourn_seconds <= 0.8
