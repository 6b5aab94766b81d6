"""Ranges of the offsets of topics, shared among the tasks of a turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from penstock.queues.segment import Slice

UNEVEN = 1.25
"""Times an even share, what a task may have before ranges are divided: one more to open costs a little."""


@dataclass(frozen=True, slots=True)
class Range:
    """The offsets of a partition from `first` up to `until`, which is not among them."""

    topic: str
    partition: int
    first: int
    until: int

    @property
    def rows(self) -> int:
        return self.until - self.first

    @property
    def line(self) -> str:
        """As Penstock's Java class reads it."""
        return f"{self.topic} {self.partition} {self.first} {self.until}"

    def cut(self, rows: int) -> tuple[Range, Range]:
        """Its first rows, and the rest."""
        return replace(self, until=self.first + rows), replace(self, first=self.first + rows)


def ranges_of(slices: Iterable[Slice]) -> list[Range]:
    """What these slices of a topic's segments hold; neighbours become one."""
    found: list[Range] = []
    for where in (path for piece in slices for path in piece.paths):
        topic, partition, first, until = where.split(" ")
        new = Range(topic, int(partition), int(first), int(until))
        last = found[-1] if found else None
        if last is not None and (last.topic, last.partition, last.until) == (topic, new.partition, new.first):
            found[-1] = replace(last, until=new.until)
        else:
            found.append(new)
    return found


def shared(ranges: Sequence[Range], tasks: int) -> list[Range]:
    """The same offsets in ranges of which each task, having as many in a row, gets about as many rows.

    As long as that is so the ranges stay whole: each is then read by one task, in order.

    >>> [each.line for each in shared([Range("t", 0, 0, 10), Range("t", 1, 0, 10)], 2)]
    ['t 0 0 10', 't 1 0 10']
    >>> [each.line for each in shared([Range("t", 0, 0, 30), Range("t", 1, 0, 10)], 2)]
    ['t 0 0 10', 't 0 10 20', 't 0 20 30', 't 1 0 10']
    """
    total = sum(each.rows for each in ranges)
    most = max((sum(each.rows for each in group) for group in _in_a_row(ranges, tasks)), default=0)
    if most * tasks <= UNEVEN * total:
        return list(ranges)
    groups = _evenly(ranges, [total * number // tasks for number in range(1, tasks + 1)])
    length = max(map(len, groups))
    return [each for group in groups for each in _lengthened(group, length)]


def _in_a_row(ranges: Sequence[Range], tasks: int) -> list[Sequence[Range]]:
    """As Spark's `coalesce` shares partitions that lie nowhere in particular: by their number."""
    if len(ranges) <= tasks:
        return [[each] for each in ranges]
    ends = [len(ranges) * number // tasks for number in range(tasks + 1)]
    return [ranges[begin:end] for begin, end in pairwise(ends)]


def _evenly(ranges: Iterable[Range], ends: Sequence[int]) -> list[list[Range]]:
    """One group of ranges up to each of these counts of rows."""
    left, done = list(ranges)[::-1], 0
    groups: list[list[Range]] = []
    for end in ends:
        groups.append([])
        while done < end:
            taken = left.pop()
            if taken.rows > end - done:
                taken, rest = taken.cut(end - done)
                left.append(rest)
            groups[-1].append(taken)
            done += taken.rows
    return groups


def _lengthened(group: list[Range], length: int) -> list[Range]:
    """The group in `length` ranges, or in as many as it has rows for."""
    made = list(group)
    while len(made) < length:
        place = max(range(len(made)), key=lambda at: made[at].rows, default=-1)
        if place < 0 or made[place].rows < 2:
            break
        made[place : place + 1] = made[place].cut(made[place].rows // 2)
    return made
