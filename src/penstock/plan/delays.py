"""How long rows take through a workflow, for given batch sizes: equations 2 to 5 of BatchIT.

Four departures from the paper. Its equation 2 divides by the whole delay, so that traffic intensity, which
is the arrival rate over it, would be above 1 for every batch: here the service rate is b / w_p(b), and what
must be below the pool's slots is the sum over all stages. The first row of a batch waits for b - 1
others, not b; and rows that come from a stage above come all at once, so that they wait for each other
there, and here only if this batch is larger. Turns ahead (3b) are those of stages at least as urgent,
each as often as one is under way, and more of them as the pool fills; a turn of a patient stage is
in the way only if such turns hold all slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import inf

from penstock.plan.workflow import Pool, Workflow

FULL = 0.99
"""Beyond that share of the pool, waiting is taken to be as if it were there."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What batch sizes lead to."""

    delays: tuple[float, ...]
    """D of each product, seconds."""
    ratio: float
    """The largest of delay over target, 1 + (6a); 0 without products."""
    busy_slots: float
    """The sum of lambda_j w_p(b_j) / b_j: slots that are busy on average."""
    busiest: float
    """The largest of them, of one stage: it is never in two turns at once."""
    rows: int
    """The sum of all batches."""


class DelayModel:
    """Estimates for one workflow on one pool; batches are lists of rows in the order of the stages."""

    def __init__(self, workflow: Workflow, pool: Pool):
        self.workflow, self.pool = workflow, pool
        self.rates = workflow.rates
        self._above = [tuple(workflow.places[name] for name in stage.above) for stage in workflow.stages]
        self._targets = [(workflow.places[each.stage], each.target_seconds) for each in workflow.products]
        self._costs = [(stage.fixed_seconds, stage.row_seconds) for stage in workflow.stages]
        self._loading = [stage.loading_seconds for stage in workflow.stages]
        self._loads = any(self._loading)
        self._slots = [min(stage.slots, pool.slots) for stage in workflow.stages]
        self._blocks = [stage.block_rows for stage in workflow.stages]
        order = sorted(range(len(workflow.stages)), key=lambda place: workflow.urgency[place])
        self.classes: list[list[int]] = []
        """Stages of one urgency, the most urgent first."""
        for place in order:
            last = self.classes[-1] if self.classes else None
            if last is not None and workflow.urgency[last[0]] == workflow.urgency[place]:
                last.append(place)
            else:
                self.classes.append([place])
        self.stage_count = len(order)

    def fits(self, estimate: Estimate) -> bool:
        """Whether throughput (6b) and memory (6c) allow it."""
        within = 1.0 + 1e-9
        return (
            estimate.busy_slots <= self.pool.usable * within
            and estimate.busiest <= (1.0 - self.pool.reserve) * within
            and estimate.rows <= self.pool.most_rows
        )

    def estimate(self, batches: Sequence[int]) -> Estimate:
        """Delays of the products, and how busy the pool is."""
        turns = [fixed + per_row * rows for (fixed, per_row), rows in zip(self._costs, batches, strict=True)]
        shares = [rate * turn / rows for rate, turn, rows in zip(self.rates, turns, batches, strict=True)]
        busy = [share * slots for share, slots in zip(shares, self._slots, strict=True)]
        # One turn has it, so that it delays what waits for that turn, and is no part of 6b.
        longer = (
            [turn + load for turn, load in zip(turns, self._loading, strict=True)] if self._loads else turns
        )
        waits = self._schedule_delays(longer, shares, busy)
        total: list[float] = []
        periods: list[float] = []
        for rate, rows, wait, turn, load, above, block in zip(
            self.rates, batches, waits, turns, self._loading, self._above, self._blocks, strict=True
        ):
            before = lump = 0.0
            for place in above:
                if total[place] > before:
                    before = total[place]
                if periods[place] > lump:
                    lump = periods[place]
            if rate <= 0.0:
                # Nothing comes, and nothing waits.
                total.append(before)
                periods.append(0.0)
                continue
            # Its own batch gathers on top of what comes at once from above.
            gathered = max((rows - 1) / rate, lump)
            processing = (max(turn, block / rate) if block else turn) + load
            total.append(before + gathered - lump + wait + processing)
            periods.append(gathered)
        delays = tuple([total[place] for place, _ in self._targets])
        ratios = [delay / target for delay, (_, target) in zip(delays, self._targets, strict=True)]
        return Estimate(delays, max(ratios, default=0.0), sum(busy), max(shares, default=0.0), sum(batches))

    def _schedule_delays(
        self, turns: Sequence[float], shares: Sequence[float], busy: Sequence[float]
    ) -> list[float]:
        """w_s of each stage (3b)."""
        slots = self.pool.slots
        waits = [0.0] * len(turns)
        work = load = 0.0
        for members in self.classes:
            for place in members:
                work += shares[place] * turns[place]
                load += busy[place]
            crowd = slots * (1.0 - min(load / slots, FULL))
            for place in members:
                waits[place] = (work - shares[place] * turns[place]) / crowd
        longest: list[float] = []  # the turns, one a slot, that a more urgent stage may find under way
        for members in reversed(self.classes):
            if len(longest) == slots:
                for place in members:
                    waits[place] += longest[0]
            longest = nlargest(slots, longest + [turns[place] for place in members if shares[place] > 0.0])
            longest.reverse()
        return waits

    def late(self, estimate: Estimate) -> list[int]:
        """The products (by place) whose target is not met."""
        return [
            place
            for place, (delay, (_, target)) in enumerate(zip(estimate.delays, self._targets, strict=True))
            if delay > target
        ]

    def tightest(self, estimate: Estimate) -> int:
        """The product (by place) with the largest delay for its target."""
        ratios = [delay / target for delay, (_, target) in zip(estimate.delays, self._targets, strict=True)]
        return ratios.index(max(ratios))

    def leads_to(self, product: int) -> set[int]:
        """The stages upstream of a product, and the one that makes it."""
        found, ahead = set(), [self._targets[product][0]]
        while ahead:
            place = ahead.pop()
            if place not in found:
                found.add(place)
                ahead += self._above[place]
        return found

    def period(self, place: int, rows: int) -> float:
        """Seconds of input in so many rows: b / lambda."""
        return rows / self.rates[place] if self.rates[place] > 0.0 else inf
