"""Kafka topics as a queue, by offsets alone: no broker is needed to know what waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.queues.offsets import Offsets, OffsetsExpired, Reach, TopicMadeAnew
from penstock.queues.segment import Slice
from penstock.queues.topic import TopicCursor, TopicRules


def cursor(next: dict[str, int] | None = None, **rules: str) -> TopicCursor:
    return TopicCursor("q", TopicRules(**rules), Offsets(next or {}))  # type: ignore[arg-type]


def ranges(slices: tuple[Slice, ...]) -> list[str]:
    return sorted(piece.paths[0] for piece in slices)


def test_what_a_look_finds_waits_since_the_look_before() -> None:
    topic = cursor()
    topic.seen({"t/0": Reach(0, 10)}, 100.0)
    topic.seen({"t/0": Reach(0, 25), "t/1": Reach(5, 9)}, 101.0)
    assert (topic.rows_waiting, topic.rows_offered) == (29, 29)
    assert [(each.rows, each.arrivals.oldest, rows) for each, rows in topic.take_fresh()] == [
        (10, 100.0, 10),
        (15, 100.0, 15),
        (4, 100.0, 4),
    ]
    assert (topic.oldest_published, topic.oldest_arrival) == (100.0, 100.0)
    assert topic.take_fresh() == []


def test_a_turn_takes_of_each_partition_by_what_waits() -> None:
    topic = cursor()
    topic.seen({"t/0": Reach(0, 300), "t/1": Reach(100, 200)}, 1.0)
    taken = topic.take(40)
    assert ranges(taken) == ["t 0 0 30", "t 1 100 110"]
    assert topic.rows_waiting == 360
    assert topic.commit(taken) == Offsets({"t/0": 30, "t/1": 110})
    rest = topic.take(1000)
    assert (topic.rows_waiting, topic.caught_up) == (0, False)
    topic.commit(rest)
    assert topic.caught_up


def test_one_row_comes_from_the_partition_that_waits_longest() -> None:
    topic = cursor()
    topic.seen({"t/0": Reach(0, 0), "t/1": Reach(0, 2)}, 1.0)
    topic.seen({"t/0": Reach(0, 50), "t/1": Reach(0, 2)}, 2.0)
    assert ranges(topic.take(1)) == ["t 1 0 1"]


def test_latest_begins_at_the_end_and_a_partition_that_comes_later_at_its_start() -> None:
    topic = cursor(start="latest")
    topic.seen({"t/0": Reach(3, 80)}, 1.0)
    assert (topic.rows_waiting, topic.position) == (0, Offsets({"t/0": 80}))
    topic.seen({"t/0": Reach(3, 80), "t/1": Reach(0, 7)}, 2.0)
    assert ranges(topic.take(100)) == ["t 1 0 7"]


def test_offsets_that_were_kept_say_where_to_go_on() -> None:
    topic = cursor({"t/0": 40}, start="latest")
    topic.seen({"t/0": Reach(0, 50)}, 1.0)
    assert ranges(topic.take(100)) == ["t 0 40 50"]


def test_rows_given_back_wait_where_they_stood() -> None:
    topic = cursor()
    topic.seen({"t/0": Reach(0, 10)}, 1.0)
    first = topic.take(4)
    topic.commit(first)
    second = topic.take(3)
    topic.give_back(second)
    assert (topic.rows_waiting, topic.position) == (6, Offsets({"t/0": 4}))
    assert ranges(topic.take(100)) == ["t 0 4 10"]


def test_rows_that_were_deleted_unread_are_an_error_that_counts_them() -> None:
    topic = cursor({"t/0": 10})
    with pytest.raises(OffsetsExpired) as caught:
        topic.seen({"t/0": Reach(25, 40)}, 1.0)
    assert str(caught.value) == (
        "partition t/0 must still hold offset 10, which 'q' reads next, begins at 25: 15 rows are lost: "
        "the pipeline stops. Set on_lost to 'earliest' to go on with what is left, or to 'latest' for what "
        "comes from now on, and resume it"
    )
    assert (caught.value.partition, caught.value.unread, caught.value.reach) == ("t/0", 10, Reach(25, 40))


@pytest.mark.parametrize(
    ("choice", "lost", "left"), [("earliest", 15, ["t 0 25 40"]), ("latest", 30, ["t 0 40 44"])]
)
def test_a_choice_goes_on_and_counts_what_is_lost(choice: str, lost: int, left: list[str]) -> None:
    topic = cursor({"t/0": 10}, on_lost=choice)
    topic.seen({"t/0": Reach(0, 20)}, 1.0)
    [loss] = topic.seen({"t/0": Reach(25, 40)}, 2.0)
    assert (loss.rows, topic.rows_lost, sum(piece.rows for piece in loss.dropped)) == (lost, lost, 10)
    if choice == "latest":
        topic.seen({"t/0": Reach(25, 44)}, 3.0)
    assert ranges(topic.take(100)) == left


def test_rows_in_a_turn_are_not_lost_by_what_expires_behind_them() -> None:
    topic = cursor(on_lost="earliest")
    topic.seen({"t/0": Reach(0, 10)}, 1.0)
    taken = topic.take(10)
    assert topic.seen({"t/0": Reach(10, 10)}, 2.0) == []
    assert topic.commit(taken) == Offsets({"t/0": 10})


def test_a_topic_that_was_made_anew_is_an_error_or_is_read_from_its_start() -> None:
    topic = cursor({"t/0": 50})
    with pytest.raises(TopicMadeAnew, match="must reach offset 50, up to which 'q' has read, ends at 8: its"):
        topic.seen({"t/0": Reach(0, 8)}, 1.0)
    topic = cursor({"t/0": 50}, on_lost="earliest")
    topic.seen({"t/0": Reach(0, 8)}, 1.0)
    taken = topic.take(100)
    assert ranges(taken) == ["t 0 0 8"]
    assert topic.commit(taken) == Offsets({"t/0": 8})


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 50), st.booleans()), max_size=20
    )
)
def test_every_offset_is_taken_once_whatever_comes_and_goes_back(
    steps: list[tuple[int, int, int, bool]],
) -> None:
    topic, ends, seen = cursor(), {"t/0": 0, "t/1": 0}, set()
    for number, (more, other, rows, back) in enumerate(steps):
        ends = {"t/0": ends["t/0"] + more, "t/1": ends["t/1"] + other}
        topic.seen({name: Reach(0, end) for name, end in ends.items()}, float(number))
        waited = topic.rows_waiting
        taken = topic.take(rows)
        assert sum(piece.rows for piece in taken) == min(rows, waited)
        if back:
            topic.give_back(taken)
            assert topic.rows_waiting == waited
        else:
            seen |= _offsets(taken, seen)
            topic.commit(taken)
            topic.release(taken)
    seen |= _offsets(topic.take(10_000), seen)
    assert len(seen) == sum(ends.values())


def _offsets(slices: tuple[Slice, ...], before: set[tuple[str, int]]) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for piece in slices:
        _, partition, first, until = piece.paths[0].split(" ")
        fresh = {(partition, offset) for offset in range(int(first), int(until))}
        assert not fresh & (before | found)
        found |= fresh
    return found


@pytest.mark.parametrize("choice", ["earliest", "latest"])
def test_rows_that_were_lost_while_nothing_ran_are_behind_it_for_good(choice: str) -> None:
    topic = cursor({"t/0": 800}, on_lost=choice)
    assert [loss.rows for loss in topic.seen({"t/0": Reach(1000, 1000)}, 1.0)] == [200]
    assert (topic.caught_up, topic.position.next) == (True, {"t/0": 1000})
    assert topic.seen({"t/0": Reach(1000, 1000)}, 2.0) == []


@pytest.mark.parametrize("given_back", [False, True])
def test_rows_that_were_lost_behind_a_turn_are_behind_it_once_it_has_ended(given_back: bool) -> None:
    topic = cursor(on_lost="earliest")
    topic.seen({"t/0": Reach(0, 20)}, 1.0)
    taken = topic.take(10)
    assert [loss.rows for loss in topic.seen({"t/0": Reach(20, 20)}, 2.0)] == [10]
    assert not topic.caught_up
    if given_back:
        topic.give_back(taken)
        topic.seen({"t/0": Reach(20, 20)}, 3.0)
    else:
        topic.commit(taken)
    assert (topic.caught_up, topic.position.next) == (True, {"t/0": 20})
