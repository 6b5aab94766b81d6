"""What can be done when no plan holds: the rate that can be held, and what would be needed for all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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

    def told(self) -> str:
        """The sentence for whoever runs it."""
        held = (
            f"{self.rows_per_second:,.0f} rows/s can be held, {self.share:.0%} of what comes"
            if self.share > 0.0
            else "no rate can be held"
        )
        late = ", ".join(f"{name} within {seconds:.2g} s" for name, seconds in self.delays.items())
        needs = f"{self.slots} slots" if self.slots is not None else ""
        targets = f"targets such as {late}" if late else ""
        help_ = " or ".join(each for each in (needs, targets) if each)
        return f"no plan holds: {held}" + (f"; needed: {help_}" if help_ else "")


def shortage_of(workflow: Workflow, pool: Pool, plan: BatchPlan) -> Shortage:
    """What is short; `plan` is the one made for the workflow, which does not hold."""
    share = _held_share(workflow, pool)
    outside = sum(stage.rows_per_second for stage in workflow.stages)
    late = {name: plan.delays[name] for name in plan.late}
    return Shortage(share, share * outside, _enough_slots(workflow, pool), late)


def _held_share(workflow: Workflow, pool: Pool) -> float:
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if plan_batches(workflow.scaled(middle), pool).holds:
            low = middle
        else:
            high = middle
    return low


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
