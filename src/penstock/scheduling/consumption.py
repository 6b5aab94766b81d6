"""How many of its waiting rows a granted stage takes: the rules of EdgeWise, section 4.2, and the plan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from penstock.errors import PenstockError
from penstock.scheduling.stage_view import StageView


class ConsumptionError(PenstockError):
    """A consumption that does not exist, or takes nothing."""


class Consumption(Protocol):
    """The size of a turn: at least 1 row where any waits, 0 where none does (a flush)."""

    def rows(self, stage: StageView) -> int: ...


@dataclass(frozen=True, slots=True)
class All:
    """Takes all rows that wait."""

    def rows(self, stage: StageView) -> int:
        return stage.rows_waiting


@dataclass(frozen=True, slots=True)
class Half:
    """Takes half of the rows that wait, rounded up."""

    def rows(self, stage: StageView) -> int:
        return (stage.rows_waiting + 1) // 2


@dataclass(frozen=True, slots=True)
class AtMost:
    """Takes all rows that wait, but never more than `limit`."""

    limit: int

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ConsumptionError(
                f"a turn must take at least 1 row, got at most {self.limit}: its queue would never empty"
            )

    def rows(self, stage: StageView) -> int:
        return min(stage.rows_waiting, self.limit)


@dataclass(frozen=True, slots=True)
class Planned:
    """Takes a batch as planned, or what there is of it; all that waits where no plan is known.

    Where it `stretches`, it takes more of a backlog, up to as many rows as double the turn: a plan for
    mean rates would let a burst wait for many turns that are mostly fixed cost. A block is never cut.
    """

    stretches: bool = True

    def rows(self, stage: StageView) -> int:
        if stage.planned_rows is None:
            return stage.rows_waiting
        stretches = self.stretches and stage.row_seconds > 0 and not stage.exact
        doubling = int(stage.slots * stage.fixed_seconds / stage.row_seconds) if stretches else 0
        return min(stage.rows_waiting, max(stage.planned_rows, doubling, stage.block_rows))


def parse_consumption(text: str) -> Consumption:
    """Reads `all`, `half`, `at-most-N` or `planned`.

    >>> parse_consumption("at-most-50")
    AtMost(limit=50)
    """
    if text == "all":
        return All()
    if text == "half":
        return Half()
    if text == "planned":
        return Planned()
    if match := re.fullmatch(r"at-most-([0-9]+)", text):
        return AtMost(int(match[1]))
    raise ConsumptionError(
        f"consumption must be 'all', 'half', 'at-most-N' or 'planned', got {text!r}: "
        "a turn would not know how many rows to take"
    )
