"""What turns of different sizes cost, by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from penstock.measure.turns import TurnRecord

SIZES = (1, 10, 100, 1_000, 10_000)


@dataclass(frozen=True)
class BatchCost:
    """Turns of about one size of one stage."""

    stage: str
    rows: int
    turns: int
    seconds: float
    """The median of them."""

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


def by_stage(costs: Sequence[BatchCost]) -> dict[str, list[BatchCost]]:
    """The costs of each stage, in the order in which they come."""
    found: dict[str, list[BatchCost]] = {}
    for each in costs:
        found.setdefault(each.stage, []).append(each)
    return found


def costs_of(records: Sequence[TurnRecord], size: int) -> list[BatchCost]:
    """The median of the turns that had about that size, for each stage."""
    by_stage: dict[str, list[float]] = {}
    for record in records:
        if 0.5 * size <= record.rows_in <= 1.5 * size:
            by_stage.setdefault(record.stage, []).append(record.turn_seconds)
    return [
        BatchCost(stage, size, len(seconds), median(seconds))
        for stage, seconds in by_stage.items()
        if len(seconds) >= 2
    ]
