"""The grants of a held stage, from their cut until Spark has committed their batch."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.queues.journal import Entry, Journal
from penstock.queues.offsets import Offsets
from penstock.queues.position import Position
from penstock.spark.grant_books import GrantBooks
from penstock.spark.inputs import QueueInputs, Slices, turn_input
from penstock.spark.turn_input import TurnInput


class GrantLedger:
    """Which rows each grant has, which grants were served, and which rows are needed no more.

    Spark's query commits a batch when the next is granted, and asks for the last batch once more when it is
    started anew: so the rows of the last one are kept until there is a next. Whoever reads and then writes
    holds `lock`.
    """

    def __init__(self, journal: Journal, inputs: QueueInputs, books: GrantBooks):
        self.lock = threading.RLock()
        self._journal, self._inputs, self._books = journal, inputs, books
        self._unreleased: dict[int, Slices] = {}
        self._positions: dict[int, dict[str, Position | Offsets]] = {}
        self._given_up: deque[tuple[int, Slices]] = deque()

    def recover(self) -> list[Slices]:
        """Takes again what was granted and not released: Spark may want to read it once more."""
        entry = self._journal.entry
        for number in sorted(entry.grants):
            slices = self._inputs.take_again(entry.grants[number])
            self._unreleased[number] = slices
            self._books.add(number, slices)
            if number <= entry.grant:
                self._positions[number] = self._inputs.commit(slices)
        return [self._unreleased[number] for number in sorted(self._unreleased)]

    @property
    def outstanding(self) -> tuple[int, ...]:
        """The grants that no batch has served yet."""
        return tuple(sorted(number for number in self._unreleased if number > self._journal.entry.grant))

    @property
    def took(self) -> TurnInput:
        """The rows of the outstanding grants, for the books."""
        portions = [turn_input(self._unreleased[number]).portions for number in self.outstanding]
        return TurnInput(tuple(portion for group in portions for portion in group))

    @property
    def merged(self) -> Slices:
        """The rows of the outstanding grants, by queue."""
        merged: dict[str, tuple[Any, ...]] = {}
        for number in self.outstanding:
            for queue, pieces in self._unreleased[number].items():
                merged[queue] = (*merged.get(queue, ()), *pieces)
        return merged

    def add(self, slices: Slices) -> None:
        """A new grant of these rows, durable before Spark learns of it."""
        number = max(self._unreleased, default=self._journal.entry.grant) + 1
        self._journal.write(self._journal.entry.with_grant(number, slices))
        self._unreleased[number] = slices
        self._books.add(number, slices)

    def commit(self, served: int, turn: Callable[[Entry], Entry]) -> None:
        """A batch has served the grants up to this one: the journal's entry then, with what `turn` adds.

        That the batch has begun means that Spark has committed the one before: its rows are needed no more,
        and are given up by the same write; call `let_go` then.
        """
        with self.lock:
            entry = self._journal.entry
            done = sorted(number for number in self._unreleased if number <= entry.grant)
            positions = dict(entry.positions)
            for number in done:
                positions |= self._positions[number]
            grants = {number: taken for number, taken in entry.grants.items() if number not in done}
            for number in self.outstanding:
                if number <= served:
                    self._positions[number] = self._inputs.commit(self._unreleased[number])
            grant = max(served, entry.grant)
            self._journal.write(turn(replace(entry, grant=grant, positions=positions, grants=grants)))
            for number in done:
                del self._positions[number]
                self._given_up.append((number, self._unreleased.pop(number)))

    def let_go(self) -> None:
        """Removes rows that were given up. Not under the lock: who is woken by it looks at the stage."""
        while (gone := self._next_given_up()) is not None:
            number, slices = gone
            self._inputs.release(slices)
            self._books.forget_below(number + 1)

    def _next_given_up(self) -> tuple[int, Slices] | None:
        """Two threads may ask at once, where a query is adrift."""
        try:
            return self._given_up.popleft()
        except IndexError:
            return None

    def close(self) -> None:
        self._books.close()
