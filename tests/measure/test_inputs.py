"""When inputs are fully processed."""

from __future__ import annotations

import random

import pytest

from penstock.errors import PenstockError
from penstock.measure.inputs import InputFigures, InputMeter


def test_an_input_is_done_when_the_last_row_derived_from_it_is() -> None:
    meter = InputMeter(0.0)
    meter.came("a", 1.0)
    meter.taken("a", rows=1, made=4, at=2.0)  # two rows, each read by two stages
    meter.taken("a", rows=2, made=0, at=3.0)
    assert meter.look(5.0) == InputFigures(0.2, 0, 0.0, 1, seconds=5.0)
    meter.taken("a", rows=2, made=1, at=6.0)
    meter.taken("a", rows=1, made=0, at=8.0)
    assert meter.look(10.0) == InputFigures(0.0, 1, 7.0, 0, seconds=5.0)


def test_rows_that_go_round_a_loop_keep_an_input_open() -> None:
    meter = InputMeter(0.0)
    meter.came("a", 0.0)
    for at in (1.0, 2.0, 3.0):
        meter.taken("a", rows=1, made=1, at=at)
    assert meter.look(4.0).inputs_open == 1
    meter.taken("a", rows=1, made=0, at=5.0)
    assert meter.look(6.0).mean_seconds == 5.0


def test_an_input_that_is_filtered_out_is_done_there() -> None:
    meter = InputMeter(0.0)
    meter.came("a", 1.0, rows=0)
    meter.came("b", 1.0)
    meter.taken("b", rows=1, made=0, at=1.5)
    assert meter.look(2.0) == InputFigures(1.0, 2, 0.25, 0, 2.0, latest_per_second=1.0)


def test_all_inputs_are_counted_and_some_followed() -> None:
    meter = InputMeter(0.0, every_inputs=10)
    for number in range(100):
        meter.came(str(number), number / 10.0)
        meter.taken(str(number), rows=1, made=0, at=number / 10.0 + 0.5)
    figures = meter.look(10.0)
    assert (figures.inputs_per_second, figures.inputs_done) == (10.0, 10)
    assert figures.mean_seconds == pytest.approx(0.5)


def test_no_more_are_open_than_allowed() -> None:
    meter = InputMeter(0.0, most_open=3)
    for number in range(10):
        meter.came(str(number), 0.0)
    assert meter.look(1.0) == InputFigures(10.0, 0, 0.0, 3, 1.0, latest_per_second=10.0)


def test_the_last_third_tells_what_comes_now_and_what_is_open_how_long_it_will_take() -> None:
    meter = InputMeter(0.0)
    times = [*range(6), *(6.0 + number / 10.0 for number in range(30))]
    for number, at in enumerate(times):
        meter.came(str(number), at)
    for number in range(4):
        meter.taken(str(number), rows=1, made=0, at=7.0)
    figures = meter.look(9.0)
    assert figures.latest_per_second == pytest.approx(10.0)
    assert figures.inputs_per_second == pytest.approx(4.0)
    assert figures.behind_seconds == pytest.approx(9.0 * 32 / 4)
    assert meter.look(10.0).behind_seconds == float("inf")


def test_one_that_takes_ten_times_as_long_as_others_is_given_up_and_makes_room() -> None:
    meter = InputMeter(0.0, most_open=1, patience_seconds=100.0)
    meter.came("lost", 0.0)
    assert meter.look(100.0).inputs_open == 1
    assert meter.look(101.0).inputs_open == 1
    meter.came("next", 101.0)
    assert not meter.follows("lost")
    meter.taken("next", rows=1, made=0, at=121.0)
    assert meter.look(122.0).mean_seconds == 20.0
    meter.came("slow", 122.0)
    meter.look(321.0)
    assert meter.follows("slow")
    meter.look(323.0)
    assert not meter.follows("slow")


@pytest.mark.parametrize("seed", range(5))
def test_any_tree_of_rows_ends_with_its_last_row(seed: int) -> None:
    rng, meter = random.Random(seed), InputMeter(0.0)
    ends = {}
    for number in range(20):
        name, left, at = str(number), 1, rng.uniform(0.0, 5.0)
        began = at
        meter.came(name, at)
        for _ in range(30):
            at += rng.uniform(0.0, 1.0)
            taken, made = rng.randint(1, left), rng.randint(0, 2)
            meter.taken(name, taken, made, at)
            left += made - taken
            if left == 0:
                break
        else:
            meter.taken(name, left, 0, at)
        ends[name] = at - began
    figures = meter.look(100.0)
    assert (figures.inputs_done, figures.inputs_open) == (20, 0)
    assert figures.mean_seconds == pytest.approx(sum(ends.values()) / 20)


def test_a_meter_that_follows_nothing_is_refused() -> None:
    with pytest.raises(PenstockError, match="a meter of inputs must follow every 1 or more inputs"):
        InputMeter(0.0, every_inputs=0)
