"""The delay model by hand-made numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.plan import PlanStage, Pool, Product, Workflow
from penstock.plan.delays import DelayModel

READ = PlanStage("read", 0.1, 0.001, rows_per_second=100.0)
ALERT = PlanStage("alert", 0.05, 0.002, {"read": 0.5})
KEEP = PlanStage("keep", 0.2, 0.001, {"read": 1.0})
PRODUCTS = (Product("alerts", "alert", 1.0), Product("kept", "keep", 10.0))


def model(*stages: PlanStage, products: tuple[Product, ...] = (), slots: int = 1) -> DelayModel:
    return DelayModel(Workflow(stages, products), Pool(slots, reserve=0.0))


def test_one_stage_gathers_its_batch_and_works_on_it() -> None:
    estimate = model(READ, products=(Product("out", "read", 1.0),)).estimate([11])
    # Ten more rows come in 0.1 s; the turn takes 0.1 + 0.011 s.
    assert estimate.delays == pytest.approx((0.211,))
    assert estimate.ratio == pytest.approx(0.211)
    assert estimate.busy_slots == pytest.approx(100 * 0.111 / 11)


def test_rows_that_come_at_once_wait_for_each_other_only_once() -> None:
    both = model(READ, ALERT, products=PRODUCTS[:1])
    same, more = both.estimate([101, 50]).delays[0], both.estimate([101, 76]).delays[0]
    waits = both.estimate([101, 50])
    assert waits.busy_slots == pytest.approx(100 * 0.201 / 101 + 50 * 0.15 / 50)
    # A second of input is gathered above, half a second more for 76 rows at 50 a second.
    assert more - same == pytest.approx(0.5 + 26 * 0.002, abs=0.02)


def test_a_patient_turn_is_in_the_way_only_if_such_turns_hold_all_slots() -> None:
    alone = model(READ, ALERT, KEEP, products=PRODUCTS).estimate([10, 5, 1000])
    beside = model(READ, ALERT, KEEP, products=PRODUCTS, slots=2).estimate([10, 5, 1000])
    # The turn of 1.2 s may be under way twice: when the first stage is due, and when the second is.
    assert alone.delays[0] - beside.delays[0] > 2 * 1.2


def test_more_urgent_turns_wait_for_no_others() -> None:
    urgent = model(READ, ALERT, KEEP, products=PRODUCTS, slots=2)
    few, many = urgent.estimate([10, 5, 100]), urgent.estimate([10, 5, 5000])
    assert many.delays[0] == few.delays[0]
    assert many.delays[1] > few.delays[1]


def test_a_block_that_is_waited_for_and_state_that_is_loaded_add_up() -> None:
    both = replace(READ, block_rows=50, state_seconds=2.0, starts=True)
    products = (Product("out", "read", 1.0),)
    assert model(both, products=products).estimate([1]).delays == pytest.approx((2.5,))


def test_state_that_is_loaded_once_takes_nothing_of_the_throughput_but_is_waited_for() -> None:
    stages = (READ, ALERT, KEEP)
    before = model(*stages, products=PRODUCTS).estimate([50, 25, 50])
    starting = (READ, ALERT, replace(KEEP, state_seconds=3.0, starts=True))
    after = model(*starting, products=PRODUCTS).estimate([50, 25, 50])
    assert (after.busy_slots, after.busiest) == (before.busy_slots, before.busiest)
    # Its own turn is longer; and it may be under way when the two stages of the other product are due.
    assert after.delays[1] - before.delays[1] >= 3.0
    assert after.delays[0] - before.delays[0] == pytest.approx(6.0)


def test_a_block_is_waited_for_and_state_is_loaded_first() -> None:
    block = replace(READ, block_rows=50)
    products = (Product("out", "read", 1.0),)
    assert model(block, products=products).estimate([1]).delays == pytest.approx((0.5,))
    state = replace(READ, state_seconds=2.0, starts=True)
    assert model(state, products=products).estimate([1]).delays == pytest.approx((2.101,))
    loaded = replace(state, starts=False)
    assert model(loaded, products=products).estimate([1]).delays == pytest.approx((0.101,))


def test_what_is_busy_or_large_beyond_the_pool_does_not_fit() -> None:
    one = model(READ)
    assert not one.fits(one.estimate([11]))
    assert one.fits(one.estimate([120]))
    small = DelayModel(Workflow((READ,), ()), Pool(1, 0.0, most_rows=100))
    assert not small.fits(small.estimate([120]))
    # More slots do not help one stage that would have to be in two turns at once.
    many = model(READ, slots=8)
    assert not many.fits(many.estimate([11]))
