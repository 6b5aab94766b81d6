"""What both sides of a topic tell each other beside it."""

from __future__ import annotations

from penstock.queues.handover import Handover
from penstock.queues.offsets import Offsets, Reach
from penstock.queues.segment import Arrivals
from penstock.queues.topic import TopicCursor, TopicRules


def test_rows_of_a_topic_count_from_their_arrival_at_the_source() -> None:
    handover = Handover()
    cursor = TopicCursor("q", TopicRules(), Offsets(), handover.seen)
    cursor.seen({"t/0": Reach(0, 0), "t/1": Reach(0, 0)}, 99.0)
    handover.written(Arrivals.at(40.0, 8), 6)
    cursor.seen({"t/0": Reach(0, 4), "t/1": Reach(0, 2)}, 100.0)
    fresh = [segment.arrivals for segment, _ in cursor.take_fresh()]
    assert [(each.oldest, each.rows) for each in fresh] == [(40.0, 4), (40.0, 2)]


def test_rows_that_nobody_told_of_count_from_the_look_before_as_after_a_restart() -> None:
    cursor = TopicCursor("q", TopicRules(), Offsets(), Handover().seen)
    cursor.seen({"t/0": Reach(0, 0)}, 99.0)
    cursor.seen({"t/0": Reach(0, 4)}, 100.0)
    [(segment, _)] = cursor.take_fresh()
    assert segment.arrivals == Arrivals.at(99.0, 4)


def test_rows_seen_while_they_are_written_count_too_and_not_again_for_those_that_come_later() -> None:
    handover = Handover()
    with handover.writing(Arrivals.at(5.0, 10)):
        assert handover.seen(10).oldest == 5.0
        handover.written(Arrivals.at(5.0, 10), 10)
    handover.written(Arrivals.at(600.0, 1), 1)
    assert handover.seen(1).oldest == 600.0


def test_rows_of_a_turn_that_was_broken_off_do_not_spoil_those_of_later_ones() -> None:
    handover = Handover()
    with handover.writing(Arrivals.at(5.0, 10)):
        handover.seen(3)
    handover.seen(4)
    handover.written(Arrivals.at(9.0, 10), 10)
    assert handover.seen(10).oldest == 9.0
