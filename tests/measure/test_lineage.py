from __future__ import annotations

from penstock.measure.inputs import InputMeter
from penstock.measure.lineage import Lineage, Origin


def test_an_input_read_by_two_stages_is_done_when_both_have_taken_all_of_it() -> None:
    lineage = Lineage(InputMeter(0.0), {"in": 2})
    came = Origin("in", "feeder", 0)
    lineage.arrived(came, 1.0)
    lineage.arrived(came, 1.0)
    lineage.passed("a", [(came, True)], None, 2.0)
    lineage.passed("b", [(came, False)], None, 3.0)
    assert lineage.meter.look(5.0).inputs_done == 0
    lineage.passed("b", [(came, True)], None, 6.0)
    figures = lineage.meter.look(10.0)
    assert (figures.inputs_done, figures.mean_seconds, figures.inputs_open) == (1, 5.0, 0)
    assert lineage.take_turns() == {"a": 1, "b": 2}


def test_rows_that_go_round_a_loop_keep_their_input_open_until_none_comes_back() -> None:
    lineage = Lineage(InputMeter(0.0), {"in": 1, "loop": 1})
    came = Origin("in", "feeder", 0)
    lineage.arrived(came, 0.0)
    lineage.passed("step", [(came, True)], Origin("loop", "step", 0), 1.0)
    lineage.passed("step", [(Origin("loop", "step", 0), True)], Origin("loop", "step", 1), 2.0)
    assert lineage.meter.look(2.5).inputs_done == 0
    lineage.passed("step", [(Origin("loop", "step", 1), True)], None, 4.0)
    assert lineage.meter.look(5.0).mean_seconds == 4.0


def test_a_turn_over_two_inputs_keeps_both_open_by_what_it_made() -> None:
    lineage = Lineage(InputMeter(0.0), {"in": 1, "out": 1})
    first, second = Origin("in", "feeder", 0), Origin("in", "feeder", 1)
    lineage.arrived(first, 0.0)
    lineage.arrived(second, 1.0)
    lineage.passed("a", [(first, True), (second, True)], Origin("out", "a", 7), 2.0)
    lineage.passed("b", [(Origin("out", "a", 7), True)], None, 3.0)
    figures = lineage.meter.look(4.0)
    assert (figures.inputs_done, figures.mean_seconds) == (2, 2.5)


def test_inputs_that_are_not_followed_leave_nothing_behind() -> None:
    lineage = Lineage(InputMeter(0.0, every_inputs=2), {"in": 1})
    for number in range(4):
        lineage.arrived(Origin("in", "feeder", number), float(number))
    for number in range(4):
        lineage.passed("a", [(Origin("in", "feeder", number), True)], None, 10.0)
    assert lineage.meter.look(20.0).inputs_done == 2
    assert lineage.take_turns() == {"a": 2}


def test_inputs_that_meet_in_a_loop_for_ever_are_given_up_with_all_that_was_derived_from_them() -> None:
    lineage = Lineage(InputMeter(0.0, most_open=10, patience_seconds=100.0), {"in": 1, "loop": 1})
    last = None
    for number in range(1000):
        came, made = Origin("in", "feeder", number), Origin("loop", "step", number)
        lineage.arrived(came, float(number))
        took = [(came, True)] if last is None else [(came, True), (last, True)]
        lineage.passed("step", took, made, float(number))
        last = made
        assert lineage.take_turns()["step"] <= 10
        if number % 10 == 0:
            assert lineage.look(float(number)).inputs_open <= 10
    assert lineage.meter.follows("in/feeder/999") or lineage.meter.follows("in/feeder/910")
    lineage.look(5000.0)
    assert lineage.look(5001.0).inputs_open == 0
    assert last is not None
    lineage.passed("step", [(last, True)], None, 5002.0)
    assert lineage.take_turns() == {"step": 0}
