from __future__ import annotations

import random
from dataclasses import replace

import pytest

from penstock.errors import PenstockError
from penstock.measure.rates import Rate, RateMeter
from penstock.plan.triggers import (
    Conditional,
    Every,
    EveryProduct,
    Outlook,
    Situation,
    Tuned,
    parse_trigger,
    tuned_seconds,
)

STEADY = Situation(
    now=100.0,
    planned_at=95.0,
    planned_rates={"read": 100.0},
    rates={"read": Rate(100.0, 100.0)},
    planned=Outlook(0.4),
    outlook=Outlook(0.45),
)


def test_rates_within_the_range_need_no_plan() -> None:
    assert Conditional().due(STEADY) == ""
    assert Conditional().due(replace(STEADY, rates={"read": Rate(149.0, 80.0)})) == ""


def test_more_rows_count_at_once_and_fewer_after_a_while() -> None:
    more = replace(STEADY, rates={"read": Rate(160.0, 110.0)})
    assert Conditional().due(more) == "160 rows/s come to read, planned for 100"
    assert Conditional().due(replace(STEADY, rates={"read": Rate(20.0, 90.0)})) == ""
    fewer = replace(STEADY, rates={"read": Rate(50.0, 60.0)})
    assert Conditional().due(fewer) == "only 60 rows/s come to read, planned for 100"


def test_a_few_rows_more_of_hardly_any_mean_nothing() -> None:
    few = replace(STEADY, planned_rates={"read": 0.1}, rates={"read": Rate(0.4, 0.1)})
    assert Conditional().due(few) == ""


@pytest.mark.parametrize(
    ("planned", "now", "due"),
    [
        (Outlook(0.2), Outlook(0.45), False),  # more than twice, and nobody is late
        (Outlook(0.4), Outlook(0.55), False),
        (Outlook(0.4), Outlook(0.65), True),
        (Outlook(0.98), Outlook(1.05), False),
        (Outlook(0.98), Outlook(1.15), True),
        (Outlook(1.2), Outlook(1.7), False),
        (Outlook(1.2), Outlook(1.9), True),
        (Outlook(0.9), Outlook(0.45), False),  # a plan that holds stays while turns become shorter
        (Outlook(0.9), Outlook(0.35), True),
        (Outlook(1.2), Outlook(0.7), True),  # one that does not is made anew sooner
        (Outlook(0.4), Outlook(0.01), False),
        (Outlook(0.4), Outlook(0.4, fits=False), True),
        (Outlook(0.4, fits=False), Outlook(0.4, fits=False), False),
    ],
)
def test_costs_count_by_what_comes_of_them(planned: Outlook, now: Outlook, due: bool) -> None:
    reason = Conditional().due(replace(STEADY, planned=planned, outlook=now))
    assert bool(reason) == due, reason


def test_a_plan_that_costs_have_overtaken_is_told_with_numbers() -> None:
    reason = Conditional().due(replace(STEADY, planned=Outlook(0.4), outlook=Outlook(1.3)))
    assert reason == "by what turns cost now a product takes 130% of its target, planned with 40%"


def test_products_and_periods() -> None:
    assert EveryProduct().due(STEADY) == ""
    assert EveryProduct().due(replace(STEADY, products=1)) == "a product was made"
    assert Every(10.0).due(STEADY) == ""
    assert Every(5.0).due(STEADY) == "5 s have passed"
    assert Tuned().due(replace(STEADY, tuned_seconds=10.0)) == ""
    due = Tuned().due(replace(STEADY, tuned_seconds=2.0))
    assert due == "2 s have passed, the period tuned from history"


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("conditional", Conditional()),
        ("product", EveryProduct()),
        ("tuned", Tuned()),
        ("1m", Every(60.0)),
    ],
)
def test_triggers_are_read_from_text(text: str, trigger: object) -> None:
    assert parse_trigger(text) == trigger


def test_a_trigger_that_is_none_is_refused() -> None:
    with pytest.raises(PenstockError) as error:
        parse_trigger("sometimes")
    assert str(error.value) == (
        "planning must be 'conditional', 'product', 'tuned' or a period such as '10s', got 'sometimes': "
        "nobody would know when to plan"
    )


def test_a_steady_load_is_planned_seldom_and_a_changing_one_often() -> None:
    rng = random.Random(1)
    steady = [100 + rng.gauss(0, 10) for _ in range(3600)]
    changing = [100.0 if second // 15 % 2 else 300.0 for second in range(3600)]
    assert tuned_seconds(steady) == 600.0
    # Ten seconds see the change in two periods of three; a minute would not see it at all.
    assert tuned_seconds(changing[:200]) < 10.0


def test_a_burst_of_rows_is_planned_for_once() -> None:
    """Rows that come in bursts of 4 s of 20 lead to few plans: the first bursts widen the range."""
    meter, planned, plans, count = RateMeter(0.0, 0.0), 0.0, 0, 0.0
    for second in range(1, 3601):
        count += 180.0 if second % 20 < 4 else 80.0
        rate = meter.look(count, float(second))
        situation = Situation(second, 0.0, {"read": planned}, {"read": rate}, Outlook(), Outlook())
        if Conditional().due(situation):
            planned, plans = max(rate.quick, rate.steady), plans + 1
    assert 1 <= plans <= 3


def test_three_times_the_rows_are_seen_within_three_seconds() -> None:
    meter, count = RateMeter(0.0, 0.0), 0.0
    for second in range(1, 61):
        count += 100.0
        rate = meter.look(count, float(second))
    assert rate == Rate(pytest.approx(100.0), pytest.approx(100.0))
    for second in range(61, 64):
        count += 300.0
        rate = meter.look(count, float(second))
    assert rate.quick > 150.0
