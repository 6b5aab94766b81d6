"""Planned batch sizes: BatchIT's expansion and reduction (Algorithms 1 and 2), and a search around them.

Three departures from the printed listings. Algorithm 1's test reads the wrong way round: here it takes the
smallest batches that satisfy 6b, and grows them while that makes the tightest product earlier, or costs it
at most a twentieth. Algorithm 2 would not end when only a target fails: here it ends when no stage is left
that can be reduced. Both change one stage at a time and 6b is one sum for all, so that a short search
between stages follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import ceil, floor

from penstock.plan.delays import DelayModel, Estimate
from penstock.plan.workflow import Pool, Workflow

GAMMA = 0.5
"""By how much Algorithm 2 reduces a batch."""
NO_TARGET_SECONDS = 60.0
"""What a stage goes by that no target lies below."""
SMALLEST, LARGEST, STEP = 0.004, 4.0, 1.3
"""Of a stage's tightest target: how much input a batch has, from and to, in the expansion."""
FACTORS = (2.0, 0.5, 1.25, 0.8)
FINE_FACTORS = (1.06, 0.94)
EXCHANGES = ((1.25, 0.6), (1.1, 0.93))
"""By what one stage's batch grows while another's shrinks."""
TRIALS = 4_500
"""Trials of the search, times stages."""
WORTHWHILE_SLOTS = 0.005
GROWTH = 1.05
FEW_STAGES = 12


@dataclass(frozen=True)
class BatchPlan:
    """Rows of a turn for each stage that rows come to, and what was predicted when it was made."""

    rows: Mapping[str, int]
    rates: Mapping[str, float]
    """Rows per second at each stage that it was made for."""
    delays: Mapping[str, float]
    """Seconds to each product."""
    ratio: float
    """The largest of delay over target; 1 + (6a)."""
    busy_slots: float
    fits: bool
    """Whether the pool can do the work (6b) and hold the batches (6c)."""
    late: tuple[str, ...] = ()
    """Products whose target will not be met."""

    @property
    def holds(self) -> bool:
        """Whether it satisfies everything: throughput, memory and all targets."""
        return self.fits and not self.late


def plan_batches(workflow: Workflow, pool: Pool, *, gamma: float = GAMMA) -> BatchPlan:
    """The batch sizes with the least delay for the tightest product, or with the least violation."""
    search = Search(DelayModel(workflow, pool))
    search.expand()
    search.reduce(gamma)
    search.settle()
    search.grow()
    return search.plan()


@dataclass
class Search:
    """The best batches so far, in the order of the stages."""

    model: DelayModel
    batches: list[int] = field(default_factory=list)
    best: Estimate | None = None
    trials: int = 0

    def expand(self) -> None:
        """Algorithm 1: the smallest batches that satisfy 6b, then larger ones while that helps."""
        share = SMALLEST
        while share <= LARGEST:
            fitted = self.best is not None and self.model.fits(self.best)
            if not self.offer(self._batches_of(share)) and fitted:
                break
            share *= STEP

    def _batches_of(self, share: float) -> list[int]:
        """Each stage with that share of its tightest target's input: all products are equally late.

        What is more than the memory holds is cut, from all of them alike.
        """
        workflow = self.model.workflow
        batches = [
            _within(share * min(target, NO_TARGET_SECONDS) * rate, stage.most_rows)
            for stage, target, rate in zip(workflow.stages, workflow.urgency, workflow.rates, strict=True)
        ]
        held = min(self.model.pool.most_rows / sum(batches), 1.0) if batches else 1.0
        return batches if held == 1.0 else [max(1, floor(held * rows)) for rows in batches]

    def reduce(self, gamma: float) -> None:
        """Algorithm 2: batches upstream of late products shrink, those that gather longest first.

        A step that breaks 6b or 6c is refused; where they are broken already, one that breaks them more.
        """
        batches = list(self.batches)
        estimate = self._estimate(batches)
        left = True
        while left and self._may_try and (late := self.model.late(estimate)):
            left = False
            upstream = set[int]().union(*map(self.model.leads_to, late))
            for place in sorted(upstream, key=lambda place: -self.model.period(place, batches[place])):
                smaller = max(1, floor(gamma * batches[place]))
                if smaller == batches[place]:
                    continue
                trial = [*batches[:place], smaller, *batches[place + 1 :]]
                reduced = self._estimate(trial)
                if self._violation(reduced) <= self._violation(estimate):
                    batches, estimate, left = trial, reduced, True
                    self._keep(batches, estimate)
                    if not self.model.late(estimate):
                        return

    def settle(self) -> None:
        """Changes one stage, or all of one urgency, as long as that is better."""
        improved = True
        while improved and self._may_try:
            improved = False
            for places in self._moves():
                for factor in self._factors:
                    improved |= self.offer(self._changed(places, factor))
            if self.model.stage_count <= FEW_STAGES:
                for one, other in permutations(range(self.model.stage_count), 2):
                    for more, less in EXCHANGES:
                        improved |= self.offer(self._exchanged(one, more, other, less))

    def grow(self) -> None:
        """Larger batches where that spares turns and costs the tightest product a twentieth at most."""
        assert self.best is not None
        allowed = self.best.ratio * GROWTH
        if self.best.ratio <= 1.0:
            allowed = min(allowed, 1.0)
        grown = True
        while grown and self.model.fits(self.best) and self.trials * self.model.stage_count < 2 * TRIALS:
            grown = False
            for places in self._moves():
                batches = self._changed(places, 2.0)
                estimate = self._estimate(batches)
                spared = self.best.busy_slots - estimate.busy_slots
                if spared > WORTHWHILE_SLOTS and estimate.ratio <= allowed and self.model.fits(estimate):
                    self.batches, self.best, grown = batches, estimate, True

    @property
    def _factors(self) -> tuple[float, ...]:
        return (*FACTORS, *FINE_FACTORS) if self.model.stage_count <= FEW_STAGES else FACTORS

    @property
    def _may_try(self) -> bool:
        return self.trials * self.model.stage_count < TRIALS

    def _moves(self) -> Iterable[Sequence[int]]:
        """What to change together: stages of one urgency, and each that matters to the tightest product."""
        yield from self.model.classes
        if self.best is None or self.model.stage_count <= FEW_STAGES:
            tight: Iterable[int] = range(self.model.stage_count)
        else:
            tight = sorted(self.model.leads_to(self.model.tightest(self.best))) if self.best.delays else ()
        for place in tight:
            yield (place,)

    def _changed(self, places: Sequence[int], factor: float) -> list[int]:
        batches = list(self.batches)
        for place in places:
            rows = batches[place]
            # At least one more: few rows would else stay as they are.
            changed = max(rows * factor, rows + 1) if factor > 1.0 else rows * factor
            batches[place] = self._bounded(place, changed)
        return batches

    def _exchanged(self, one: int, more: float, other: int, less: float) -> list[int]:
        """More rows for one stage, fewer for the other: 6b holds both together."""
        batches = self._changed((one,), more)
        batches[other] = self._bounded(other, less * batches[other])
        return batches

    def _bounded(self, place: int, rows: float) -> int:
        return _within(rows, self.model.workflow.stages[place].most_rows)

    def offer(self, batches: list[int]) -> bool:
        """Keeps the batches if they are better than the best so far; whether they are."""
        if batches == self.batches:
            return False
        estimate = self._estimate(batches)
        return self._keep(batches, estimate)

    def _keep(self, batches: list[int], estimate: Estimate) -> bool:
        if self.best is not None and not self._better(estimate, self.best):
            return False
        self.batches, self.best = batches, estimate
        return True

    def _estimate(self, batches: list[int]) -> Estimate:
        self.trials += 1
        return self.model.estimate(batches)

    def _better(self, one: Estimate, other: Estimate) -> bool:
        excess, before = self._excess(one), self._excess(other)
        if excess != before:
            return excess < before
        if abs(one.ratio - other.ratio) > 1e-6 * other.ratio:
            return one.ratio < other.ratio
        return one.busy_slots < other.busy_slots - 1e-9

    def _excess(self, estimate: Estimate) -> tuple[int, int]:
        """By how many hundredths 6c and 6b are violated: below one, only the delay counts."""
        memory, throughput = self._violation(estimate)
        return ceil(100.0 * memory), ceil(100.0 * throughput)

    def _violation(self, estimate: Estimate) -> tuple[float, float]:
        """How far beyond 6c and 6b, as shares of the limits.

        Memory comes first: rows that the slots have no time for are late, those it has no room for are lost.
        """
        if self.model.fits(estimate):
            return 0.0, 0.0
        pool = self.model.pool
        busy = max(estimate.busy_slots / pool.usable, estimate.busiest / (1.0 - pool.reserve))
        return max(estimate.rows / pool.most_rows - 1.0, 0.0), max(busy - 1.0, 0.0)

    def plan(self) -> BatchPlan:
        assert self.best is not None
        workflow, model = self.model.workflow, self.model
        flowing = [place for place, rate in enumerate(model.rates) if rate > 0.0]
        names = [stage.name for stage in workflow.stages]
        return BatchPlan(
            rows={names[place]: self.batches[place] for place in flowing},
            rates=dict(zip(names, model.rates, strict=True)),
            delays={
                product.name: delay
                for product, delay in zip(workflow.products, self.best.delays, strict=True)
            },
            ratio=self.best.ratio,
            busy_slots=self.best.busy_slots,
            fits=model.fits(self.best),
            late=tuple(workflow.products[place].name for place in model.late(self.best)),
        )


def _within(rows: float, most: int) -> int:
    return max(1, min(most, floor(rows)))
