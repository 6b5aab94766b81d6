"""Rates through a graph, and equation 4."""

from __future__ import annotations

import random
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model import BulkService, GIGk, MMk, ModelError, Network, NetworkStage, rates_through


def test_rates_add_up_at_joins_and_go_to_all_sides_of_a_split() -> None:
    shares = {"read": {"left": 0.5, "right": 2.0}, "left": {"both": 1.0}, "right": {"both": 0.1}}
    rates = rates_through({"read": 100.0, "left": 0.0, "right": 0.0, "both": 5.0}, shares)
    assert rates == pytest.approx({"read": 100.0, "left": 50.0, "right": 200.0, "both": 75.0})


def test_a_loop_adds_all_its_rounds_however_many() -> None:
    shares = {"detect": {"detect": 0.999, "report": 0.1}}
    rates = rates_through({"detect": 1.0, "report": 0.0}, shares)
    assert rates == pytest.approx({"detect": 1000.0, "report": 100.0})


def test_a_loop_over_several_stages_may_begin_anywhere() -> None:
    # DRS, figure 2: E feeds A.
    shares = {"E": {"A": 0.25}, "A": {"B": 1.0, "C": 1.0}, "B": {"E": 1.0}, "C": {"E": 1.0}}
    rates = rates_through({"E": 0.0, "A": 8.0, "B": 0.0, "C": 0.0}, shares)
    assert rates == pytest.approx({"E": 32.0, "A": 16.0, "B": 16.0, "C": 16.0})


@given(seed=st.integers(0, 10_000), count=st.integers(1, 12))
@settings(max_examples=100)
def test_rates_satisfy_their_equations_on_any_graph(seed: int, count: int) -> None:
    rng = random.Random(seed)
    names = [f"s{place}" for place in range(count)]
    outside = {name: rng.choice([0.0, 1.0, 50.0]) for name in names}
    shares = {
        name: {other: rng.uniform(0.0, 0.9 / count) for other in rng.sample(names, rng.randint(0, count))}
        for name in names
    }
    rates = rates_through(outside, shares)
    for name in names:
        coming = outside[name] + sum(edges.get(name, 0.0) * rates[above] for above, edges in shares.items())
        assert rates[name] == pytest.approx(coming)


@pytest.mark.parametrize("share", [1.0, 1.5])
def test_a_loop_that_never_ends_is_refused(share: float) -> None:
    with pytest.raises(ModelError) as error:
        rates_through({"a": 1.0, "b": 0.0}, {"a": {"b": share}, "b": {"a": 1.0}})
    assert str(error.value) == (
        "rows that go round a loop must become fewer, got as many or more at each round through 'b': "
        "no rate could be told"
    )


def test_an_edge_to_nowhere_is_refused() -> None:
    with pytest.raises(ModelError, match="an edge must join two stages that have a rate, got 'a' to 'x'"):
        rates_through({"a": 1.0}, {"a": {"x": 1.0}})


def test_an_input_pays_for_each_row_it_leads_to() -> None:
    models = {"read": MMk(10.0, 20.0), "match": GIGk(50.0, 20.0, 2.0, 0.5)}
    network = Network.of(models, {"read": 10.0, "match": 50.0}, 10.0)
    slots = {"read": 1, "match": 4}
    expected = 0.1 + 5.0 * models["match"].sojourn_seconds(4)
    assert network.sojourn_seconds(slots) == pytest.approx(expected)
    # The bound of Algorithm 2: (1/lambda_0) sum(lambda_i/mu_i), not sum(1/mu_i) = 0.1.
    assert network.floor_seconds == pytest.approx((10.0 / 20.0 + 50.0 / 20.0) / 10.0)
    assert network.least_slots == {"read": 1, "match": 3}
    assert network.sojourn_seconds({"read": 1, "match": 2}) == inf


def test_rows_of_one_input_that_share_a_turn_pay_for_it_once() -> None:
    models = {"match": BulkService(5000.0, 0.1, 0.0001)}
    by_rows = Network.of(models, {"match": 5000.0}, 10.0)
    by_turns = Network.of(models, {"match": 5000.0}, 10.0, turns_per_input={"match": 1.5})
    assert by_rows.stages[0].weight == 500.0
    assert by_turns.sojourn_seconds({"match": 1}) == 1.5 * models["match"].sojourn_seconds(1)


def test_a_network_without_inputs_or_with_two_stages_of_a_name_is_refused() -> None:
    with pytest.raises(ModelError, match="the rate of inputs must be positive and finite, got 0"):
        Network.of({"a": MMk(0.0, 1.0)}, {"a": 0.0}, 0.0)
    with pytest.raises(ModelError, match=r"a network must have stages of different names, got \['a', 'a'\]"):
        Network((NetworkStage("a", MMk(0.0, 1.0)), NetworkStage("a", MMk(0.0, 1.0))))
