"""What one turn was, and how the time of a row at a stage is divided."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from penstock.errors import PenstockError

TurnKind = Literal["direct", "held"]

NO_TURN_YET = -math.inf
"""The `last_turn_end` of a stage that has not run."""


class TurnError(PenstockError):
    """A turn record that contradicts itself."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One finished turn of one stage.

    The three times are means over its rows, in seconds, as `split_times` divides them. A turn that
    only flushed a window has `rows_in` 0; its seconds still count as work.
    """

    stage: str
    pipeline: str
    batch: int
    kind: TurnKind
    slots: int
    granted_at: float
    finished_at: float
    rows_in: int
    rows_out: int
    queue_seconds: float
    schedule_seconds: float
    compute_seconds: float

    def __post_init__(self) -> None:
        if self.kind not in ("direct", "held"):
            raise self._error("a kind of 'direct' or 'held'", repr(self.kind), "no other turns exist")
        if self.slots < 1:
            raise self._error("at least 1 slot", str(self.slots), "every turn occupies one")
        if min(self.rows_in, self.rows_out) < 0:
            rows = f"{self.rows_in} in and {self.rows_out} out"
            raise self._error("zero or more rows", rows, "rates would be wrong")
        times = (self.queue_seconds, self.schedule_seconds, self.compute_seconds)
        if not all(0.0 <= seconds < math.inf for seconds in times):
            raise self._error("times of zero or more seconds", str(times), "means would be wrong")

    @property
    def turn_seconds(self) -> float:
        """Seconds from the grant to the end; 0.0 where the clock was set back meanwhile."""
        return max(self.finished_at - self.granted_at, 0.0)

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TurnRecord:
        """The record that `to_json` was called on."""
        return cls(**stored)

    def _error(self, rule: str, got: str, follows: str) -> TurnError:
        return TurnError(f"turn {self.batch} of stage {self.stage!r} must have {rule}, got {got}: {follows}")


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn in a few words, as it is kept in the state directory."""

    stage: str
    at: float
    seconds: float
    slots: int
    rows: int

    @classmethod
    def of(cls, record: TurnRecord) -> KeptTurn:
        seconds = round(record.turn_seconds, 3)
        return cls(record.stage, round(record.granted_at, 3), seconds, record.slots, record.rows_in)

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> KeptTurn:
        return cls(**stored)


class RowTimes(NamedTuple):
    """Where the time of a row at a stage went: T_Q, T_S, T_C."""

    queue_seconds: float
    schedule_seconds: float
    compute_seconds: float


def split_times(arrival: float, last_turn_end: float, granted_at: float, visible_at: float) -> RowTimes:
    """Divides the time of a row at a stage into T_Q, T_S and T_C, none of them negative.

    T_Q: from its arrival to the end of the last turn that ran without it (`NO_TURN_YET` if none did);
    T_S: from there to the grant; T_C: from the grant until its result is visible. They add up to
    `visible_at - arrival`; a row that arrives after the grant, and is still taken, has T_C only.

    >>> split_times(arrival=10.0, last_turn_end=11.0, granted_at=11.5, visible_at=12.25)
    RowTimes(queue_seconds=1.0, schedule_seconds=0.5, compute_seconds=0.75)
    """
    in_line = min(max(arrival, last_turn_end), max(arrival, granted_at))
    started = max(in_line, granted_at)
    return RowTimes(in_line - arrival, started - in_line, max(visible_at - started, 0.0))
