"""Plans that were put in force: when, why, and what they said. As values, as JSON, and as lines to read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.plan.batches import BatchPlan


@dataclass(frozen=True)
class PlanChange:
    """A plan that was put in force."""

    at: float
    reason: str
    rows: Mapping[str, int]
    """Of a batch, by stage."""
    delays: Mapping[str, float]
    """Seconds to each product, as predicted."""
    busy_slots: float
    holds: bool
    shortage: str = ""
    """What is short where it does not hold, as far as that was looked at."""

    @classmethod
    def of(cls, plan: BatchPlan, at: float, reason: str, shortage: str = "") -> PlanChange:
        return cls(at, reason, plan.rows, plan.delays, plan.busy_slots, plan.holds, shortage)

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return {**vars(self), "rows": dict(self.rows), "delays": dict(self.delays)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> PlanChange:
        return cls(**stored)

    def line(self, stages: Collection[str] | None = None) -> str:
        """One line: the time of day in UTC, the reason, the batches of these stages, and what is short."""
        at = datetime.fromtimestamp(self.at, UTC).strftime("%H:%M:%S.%f")[:-3]
        shown = _named(
            (name, f"{rows:,}") for name, rows in self.rows.items() if stages is None or name in stages
        )
        delays = _named((name, f"{seconds:.2g} s") for name, seconds in self.delays.items())
        words = [f"{at}  plan   {self.reason}", f"rows a turn: {shown or 'none of these'}"]
        words.append(f"predicted: {delays or 'no targets'}; {self.busy_slots:.2f} slots busy")
        if not self.holds:
            words.append(self.shortage or "no plan holds")
        return "; ".join(words)


def _named(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {text}" for name, text in pairs)
