"""What happened at a stage, added up: the difference of two sums tells of the time between them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter, sub

from penstock.measure.turns import TurnRecord


@dataclass(slots=True)
class Sums:
    """Counts and seconds of one stage over some time."""

    turns: int = 0
    rows_in: int = 0
    rows_out: int = 0
    arrived: int = 0
    empty_seconds: float = 0.0
    turn_seconds: float = 0.0
    turn_slot_seconds: float = 0.0
    """Turn seconds times slots, of turns that have ended, where they ended."""
    slot_seconds: float = 0.0
    """Slot time that turns occupied, when they did, also those that still run or came to nothing."""
    # Seconds times rows, so that the means are those of a row and not of a turn.
    queue_row_seconds: float = 0.0
    schedule_row_seconds: float = 0.0
    compute_row_seconds: float = 0.0

    def count(self, record: TurnRecord) -> None:
        self.turns += 1
        self.rows_in += record.rows_in
        self.rows_out += record.rows_out
        self.turn_seconds += record.turn_seconds
        self.turn_slot_seconds += record.turn_seconds * record.slots
        self.queue_row_seconds += record.queue_seconds * record.rows_in
        self.schedule_row_seconds += record.schedule_seconds * record.rows_in
        self.compute_row_seconds += record.compute_seconds * record.rows_in

    def copy(self) -> Sums:
        return Sums(*_values(self))

    def minus(self, earlier: Sums) -> Sums:
        """What came after `earlier`."""
        # Without a loop in Python: whoever watches asks for this every second, of every stage.
        return Sums(*map(sub, _values(self), _values(earlier)))


_values = attrgetter(*(field.name for field in fields(Sums)))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The sums of a stage from its start up to a time."""

    at: float
    sums: Sums
