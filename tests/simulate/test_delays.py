"""What is learned from real turns about the time between them."""

from __future__ import annotations

import pytest

from penstock.simulate.delays import Delays, SeenTurn, delays_of, shown_before


def test_a_slot_that_somebody_waits_for_is_granted_a_while_after_a_turn() -> None:
    # Two slots, four stages with rows from the beginning: each end is followed by a grant, 3 ms later.
    turns = [SeenTurn("a", 0.0, 1.0), SeenTurn("b", 0.0, 1.5)]
    turns += [SeenTurn("c", 1.003, 2.0), SeenTurn("d", 1.503, 2.5), SeenTurn("a", 2.003, 3.0)]
    came = {"a": [0.0, 0.2], "b": [0.0], "c": [0.1], "d": [0.1]}
    assert delays_of(turns, came).free == pytest.approx(0.003)


def test_rows_that_come_while_a_slot_is_free_are_seen_a_while_later() -> None:
    turns = [SeenTurn("a", second + 0.006, second + 0.1) for second in range(1, 6)]
    found = delays_of(turns, {"a": [float(second) for second in range(1, 7)]})
    assert found == Delays(look=pytest.approx(0.006))


def test_a_stage_that_was_in_a_turn_waits_for_the_end_of_that() -> None:
    turns = [SeenTurn("a", 0.0, 1.0), SeenTurn("a", 1.004, 2.0)]
    found = delays_of(turns, {"a": [0.0, 0.5]})
    assert found.free == pytest.approx(0.004)


def test_turns_before_the_measured_part_do_not_count() -> None:
    turns = [SeenTurn("a", 0.5, 0.6), SeenTurn("a", 1.01, 1.1)]
    assert delays_of(turns, {"a": [0.0, 1.0]}, begin=1.0).look == pytest.approx(0.01)
    assert delays_of([], {}) == Delays()


def test_results_are_at_the_sink_before_their_turns_are_over() -> None:
    turns = [SeenTurn("a", 0.0, 1.0), SeenTurn("a", 2.0, 3.0), SeenTurn("b", 0.0, 1.0)]
    assert shown_before(turns, {"a": [0.9, 2.95, 3.5]}) == pytest.approx(0.075)
    assert shown_before(turns, {}) == 0.0
