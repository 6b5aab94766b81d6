from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.measure.slot_figures import SlotMeasuring, StageSlotMeter
from penstock.measure.turns import TurnRecord


def turn(rows: int, seconds: float, slots: int = 1, waited: float = 0.0) -> TurnRecord:
    return TurnRecord("s", "p", 0, "direct", slots, 10.0, 10.0 + seconds, rows, rows, waited, 0.0, seconds)


def test_no_more_slots_count_as_busy_than_a_turn_had_rows() -> None:
    meter = StageSlotMeter(0.0, SlotMeasuring(10.0))
    for second in range(10):
        meter.arrived(float(second), 1)
        meter.ended(turn(1, 0.5, slots=4, waited=0.25))
    figures = meter.look(10.0, slots=4, turns=10, inputs_done=10)
    assert figures.moments.slot_rows_per_second == pytest.approx(2.0)
    assert figures.moments.rows_per_second == pytest.approx(1.0)
    assert figures.sojourn_seconds == pytest.approx(0.75)
    assert figures.turns_per_input == pytest.approx(1.0)
    assert figures.segment_seconds == pytest.approx(0.9)


def test_what_waited_before_the_start_is_no_rate_and_an_idle_interval_changes_no_cost() -> None:
    meter = StageSlotMeter(100.0, SlotMeasuring(10.0))
    meter.arrived(99.0, 1_000_000)
    meter.arrived(101.0, 20)
    meter.ended(turn(20, 2.0))
    assert meter.look(110.0, 1, 1, 1).moments.rows_per_second == pytest.approx(2.0)
    idle = meter.look(120.0, 1, 0, 0)
    assert idle.moments.rows_per_second == pytest.approx(1.0)
    assert (idle.moments.slot_rows_per_second, idle.sojourn_seconds) == (pytest.approx(10.0), 2.0)


def test_after_a_change_of_slots_only_what_came_since_counts() -> None:
    meter = StageSlotMeter(0.0, SlotMeasuring(10.0))
    meter.ended(turn(10, 8.0))
    meter.look(10.0, 1, 1, 1)
    meter.slots_changed()
    meter.ended(turn(10, 2.0, slots=2))
    assert meter.look(20.0, 2, 1, 1).sojourn_seconds == pytest.approx(2.0)


def test_intervals_without_length_are_refused() -> None:
    with pytest.raises(PenstockError) as refused:
        SlotMeasuring(0.0)
    assert str(refused.value) == (
        "slots must be measured over intervals of some length and every 1 or more rows and inputs, "
        "got 0.0 s, 1 and 1: nothing would be known"
    )


def test_the_spread_of_long_rows_is_not_taken_for_the_fixed_cost_of_turns() -> None:
    meter = StageSlotMeter(0.0, SlotMeasuring(10.0))
    # Two rounds each, of 0.4 s on average, and 0.1 s for the turn.
    for seconds in (0.3, 0.5, 0.7, 0.9, 1.1, 1.9):
        meter.ended(turn(7, seconds, slots=4))
    figures = meter.look(10.0, 4, 6, 6).with_costs(fixed_seconds=0.8)
    assert figures.fixed_seconds == pytest.approx(0.3)
    assert figures.row_seconds == pytest.approx((0.9 - 0.3) / 2)
    assert meter.look(20.0, 4, 0, 0).with_costs(fixed_seconds=0.1).row_seconds == pytest.approx(0.4)


def test_turns_count_to_the_inputs_that_are_done_in_a_later_interval() -> None:
    meter = StageSlotMeter(0.0, SlotMeasuring(10.0))
    assert meter.look(10.0, 1, turns=6, inputs_done=0).turns_per_input == 0.0
    assert meter.look(20.0, 1, turns=2, inputs_done=4).turns_per_input == pytest.approx(2.0)
