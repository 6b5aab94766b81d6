"""What can be done when no plan holds: the rate that can be held, and what would be needed for all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from penstock.plan.batches import BatchPlan, plan_batches
from penstock.plan.workflow import Pool, Workflow

HALVINGS = 7
MOST_SLOTS_FACTOR = 16


@dataclass(frozen=True)
class Shortage:
    """Why a plan does not hold, and what would help."""

    share: float
    """Of the rows that come, what a plan would hold; 0 where not even few would be in time."""
    rows_per_second: float
    """That share of the rows from outside."""
    slots: int | None
    """The least slots with which all of it would hold; None where no number helps."""
    delays: Mapping[str, float]
    """For each late product, the seconds it will take."""
    rows: int | None = None
    """The least limit on rows in all batches (6c) with which all of it would hold; None where none helps."""

    def told(self) -> str:
        """The sentence for whoever runs it."""
        held = (
            f"{self.rows_per_second:,.0f} rows/s can be held, {self.share:.0%} of what comes"
            if self.share > 0.0
            else "no rate can be held"
        )
        late = ", ".join(f"{name} within {seconds:.2g} s" for name, seconds in self.delays.items())
        needs = f"{self.slots} slots" if self.slots is not None else ""
        memory = f"memory for {self.rows:,} rows in all batches (plan_rows)" if self.rows is not None else ""
        targets = f"targets such as {late}" if late else ""
        help_ = " or ".join(each for each in (needs, memory, targets) if each)
        return f"no plan holds: {held}" + (f"; needed: {help_}" if help_ else "")


def shortage_of(workflow: Workflow, pool: Pool, plan: BatchPlan) -> Shortage:
    """What is short; `plan` is the one made for the workflow, which does not hold."""
    share = _held_share(workflow, pool)
    outside = sum(stage.rows_per_second for stage in workflow.stages)
    late = {name: plan.delays[name] for name in plan.late}
    slots, rows = _enough_slots(workflow, pool), _enough_rows(workflow, pool)
    return Shortage(share, share * outside, slots, late, rows)


def _held_share(workflow: Workflow, pool: Pool) -> float:
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if plan_batches(workflow.scaled(middle), pool).holds:
            low = middle
        else:
            high = middle
    return low


def _enough_rows(workflow: Workflow, pool: Pool) -> int | None:
    """The least limit on rows that helps, within a hundredth; None where there is no limit, or none helps."""
    if pool.most_rows == inf:
        return None
    unlimited = plan_batches(workflow, replace(pool, most_rows=inf))
    if not unlimited.holds:
        return None
    low, high = pool.most_rows, sum(unlimited.rows.values())
    while high - low > max(1, high // 100):
        middle = int(low + high) // 2
        if plan_batches(workflow, replace(pool, most_rows=middle)).holds:
            high = middle
        else:
            low = middle
    return high


def _enough_slots(workflow: Workflow, pool: Pool) -> int | None:
    """The least number, by doubling and then halving what lies between."""
    low, high = pool.slots, pool.slots
    while not plan_batches(workflow, replace(pool, slots=high)).holds:
        low, high = high, 2 * high
        if high > MOST_SLOTS_FACTOR * pool.slots:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if plan_batches(workflow, replace(pool, slots=middle)).holds:
            high = middle
        else:
            low = middle
    return high
