"""What will happen, in the order of time."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

TURN_ENDS, NODE_CHANGES, ROWS_COME, LOOK = range(4)
"""What goes first among things that happen at one moment."""


class Agenda:
    """Things to come, ordered by (time, priority, sequence): equal runs have equal orders.

    >>> agenda = Agenda()
    >>> agenda.add(2.0, LOOK, "look"), agenda.add(2.0, TURN_ENDS, "turn"), agenda.add(1.0, LOOK, "early")
    (None, None, None)
    >>> [agenda.pop()[1] for _ in range(3)]
    ['early', 'turn', 'look']
    """

    __slots__ = ("_heap", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, object]] = []
        self._sequence = 0

    def add(self, time: float, priority: int, thing: object) -> None:
        self._sequence += 1
        heappush(self._heap, (time, priority, self._sequence, thing))

    def pop(self) -> tuple[float, object]:
        """The next, and when it happens."""
        time, _, _, thing = heappop(self._heap)
        return time, thing

    @property
    def next_at(self) -> float:
        """When the next thing happens; inf if there is none."""
        return self._heap[0][0] if self._heap else inf

    @property
    def next_order(self) -> tuple[float, int]:
        """Time and priority of the next."""
        return self._heap[0][:2] if self._heap else (inf, LOOK)
