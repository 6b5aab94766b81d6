"""How far a consumer of a queue has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.queues.segment import Segment


@dataclass(frozen=True)
class Position:
    """How far a consumer has come: a set of segments, not one offset, as segments may be taken in any order.

    Every sequence up to `low` is consumed, so is each one in `above`; `partial` counts rows from a start.
    """

    low: int = 0
    partial: Mapping[int, int] = field(default_factory=dict)
    above: frozenset[int] = frozenset()

    @property
    def highest(self) -> int:
        return max(self.low, *self.partial, *self.above, 0)

    def consumed(self, segment: Segment) -> int:
        """Rows of `segment`, from its start, that this position has behind it."""
        if segment.sequence <= self.low or segment.sequence in self.above:
            return segment.rows
        return min(self.partial.get(segment.sequence, 0), segment.rows)

    def to_json(self) -> dict[str, Any]:
        partial = {str(sequence): rows for sequence, rows in sorted(self.partial.items())}
        return {"low": self.low, "partial": partial, "above": sorted(self.above)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Position:
        partial = {int(sequence): int(rows) for sequence, rows in fields["partial"].items()}
        return cls(int(fields["low"]), partial, frozenset(int(sequence) for sequence in fields["above"]))


EARLIEST = Position()
