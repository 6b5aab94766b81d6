"""The offsets of a turn, shared among its tasks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.queues.offsets import Offsets, Reach
from penstock.queues.ranges import UNEVEN, Range, ranges_of, shared
from penstock.queues.topic import TopicCursor, TopicRules

counts = st.lists(st.integers(1, 10_000), min_size=1, max_size=12)


def of_each_task(ranges: list[Range], tasks: int) -> list[int]:
    """Rows by task, as Spark's `coalesce` shares partitions: each as many of them, in a row."""
    if len(ranges) <= tasks:
        return [each.rows for each in ranges]
    ends = [len(ranges) * number // tasks for number in range(tasks + 1)]
    return [sum(each.rows for each in ranges[a:b]) for a, b in pairwise(ends)]


@given(counts, st.integers(1, 6))
def test_every_offset_is_read_once_whatever_the_tasks(rows: list[int], tasks: int) -> None:
    ranges = [Range("t", number, 7, 7 + count) for number, count in enumerate(rows)]
    made = shared(ranges, tasks)
    read = sorted((each.partition, offset) for each in made for offset in range(each.first, each.until))
    assert read == [(each.partition, offset) for each in ranges for offset in range(each.first, each.until)]


@given(counts, st.integers(2, 6))
def test_no_task_has_much_more_rows_than_another(rows: list[int], tasks: int) -> None:
    ranges = [Range("t", number, 0, 100 + count) for number, count in enumerate(rows)]
    total = sum(each.rows for each in ranges)
    assert max(of_each_task(shared(ranges, tasks), tasks)) <= UNEVEN * total / tasks + 1


def test_partitions_that_are_even_stay_whole() -> None:
    ranges = [Range("t", number, 0, 1000 + number) for number in range(4)]
    assert shared(ranges, 2) == ranges


def test_one_partition_is_divided_among_all_tasks() -> None:
    made = shared([Range("t", 0, 5, 305)], 3)
    assert [(each.first, each.until) for each in made] == [(5, 105), (105, 205), (205, 305)]


def test_fewer_rows_than_tasks_are_a_range_each() -> None:
    assert [each.rows for each in shared([Range("t", 0, 0, 2)], 4)] == [1, 1]


def test_pieces_of_a_partition_that_follow_each_other_are_one_range() -> None:
    cursor = TopicCursor("stage", TopicRules(), Offsets())
    cursor.seen({"t/0": Reach(0, 4), "t/1": Reach(2, 3)}, 1.0)
    cursor.seen({"t/0": Reach(0, 9), "t/1": Reach(2, 3)}, 2.0)
    assert ranges_of(cursor.take(10)) == [Range("t", 0, 0, 9), Range("t", 1, 2, 3)]
