"""Who plans the sizes of batches: measured rates and costs in, batch sizes out, each with its reason."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

from penstock.measure.rates import Rate, RateMeter
from penstock.plan.arrival_history import DAY_SECONDS, FIRST_TUNING_SECONDS, ArrivalHistory
from penstock.plan.batches import BatchPlan, plan_batches
from penstock.plan.changes import PlanChange
from penstock.plan.delays import DelayModel
from penstock.plan.from_graphs import Costs, workflow_of
from penstock.plan.overload import shortage_of
from penstock.plan.triggers import PERIODS, Outlook, Situation, Trigger, Tuned, tuned_seconds
from penstock.plan.workflow import RESERVE, PlanError, Pool, Workflow
from penstock.stages.stage import StageGraph, first_stages

log = logging.getLogger("penstock")

KEPT_PLANS = 1_000
SHORTAGE_SECONDS = 30.0
"""Between two looks at how much is short: they take many plans."""


@dataclass(frozen=True, slots=True)
class Offered:
    """All rows that ever came to a stage, and since when they have been counted."""

    rows: int
    since: float


@dataclass(frozen=True)
class PlanLook:
    """What a look goes by: the pipelines, what is known of their stages, and the pool."""

    now: float
    graphs: tuple[StageGraph, ...]
    costs: Costs
    offered: Mapping[str, Offered]
    slots: int
    slots_in_force: Mapping[str, int] = field(default_factory=dict)
    """Of stages that have others than were declared."""
    starting: frozenset[str] = frozenset()
    """Stages with state that had no turn since they started, or since it was divided."""


class BatchPlanner:
    """Looks at rates and costs now and then, and plans anew when the trigger says so.

    Not safe for threads: the caller locks.
    """

    def __init__(self, trigger: Trigger, reserve: float = RESERVE, most_rows: int | None = None):
        """`most_rows` is for all batches together."""
        self.trigger = trigger
        self.changes: deque[PlanChange] = deque(maxlen=KEPT_PLANS)
        self.made = 0
        self.history = ArrivalHistory()
        self.tuned_seconds = PERIODS[0]
        """The period that the history asked for when it was last looked at; only a tuned trigger looks."""
        self._tune_at = -inf
        self._reserve = reserve
        self._most_rows = inf if most_rows is None else most_rows
        self._meters: dict[str, RateMeter] = {}
        self._rates: dict[str, Rate] = {}
        self._products = 0
        self._in_force: BatchPlan | None = None
        self._planned_at = 0.0
        self._planned = Outlook()
        self._short_at = -inf

    @property
    def plan(self) -> BatchPlan | None:
        """The plan in force."""
        return self._in_force

    def product_made(self) -> None:
        """A turn brought rows to a sink."""
        self._products += 1

    def look(self, seen: PlanLook) -> PlanChange | None:
        """Measures, and plans where that is due; the change, if there is one."""
        self._measure(seen)
        rates = {name: max(rate.quick, rate.steady) for name, rate in self._rates.items()}
        workflow = workflow_of(
            seen.graphs, seen.costs, rates, slots=seen.slots_in_force, starting=seen.starting
        )
        if not workflow.stages:
            return None
        pool = Pool(seen.slots, self._reserve, self._most_rows)
        try:
            reason = self._reason(seen.now, workflow, pool)
            if not reason:
                return None
            plan = plan_batches(workflow, pool)
        except PlanError as error:
            log.warning("no plan could be made: %s", error)
            return None
        self.made += 1
        self._in_force, self._planned_at, self._products = plan, seen.now, 0
        self._planned = Outlook(plan.ratio, plan.fits)
        change = PlanChange.of(plan, seen.now, reason, self._shortage(seen.now, workflow, pool, plan))
        self.changes.append(change)
        return change

    def _measure(self, seen: PlanLook) -> None:
        for name, offered in seen.offered.items():
            meter = self._meters.setdefault(name, RateMeter(0.0, offered.since))
            self._rates[name] = meter.look(offered.rows, seen.now)
        first = frozenset(name for graph in seen.graphs for name in first_stages(graph))
        self.history.look(seen.now, {name: each.rows for name, each in seen.offered.items() if name in first})
        self._tune(seen.now)
        for name in self._meters.keys() - seen.offered.keys():
            del self._meters[name]
            self._rates.pop(name, None)

    def _tune(self, now: float) -> None:
        """Daily; while less than a day is known, whenever twice as much is."""
        if now < self._tune_at or not isinstance(self.trigger, Tuned):
            return
        self.tuned_seconds = tuned_seconds(self.history.counts)
        self._tune_at = now + min(max(len(self.history), FIRST_TUNING_SECONDS), DAY_SECONDS)

    def _reason(self, now: float, workflow: Workflow, pool: Pool) -> str:
        rates = {stage.name: stage.rows_per_second for stage in workflow.stages if stage.rows_per_second > 0}
        if self._in_force is None:
            return "the first plan" if rates else ""
        if fresh := [name for name in workflow.places if name not in self._in_force.rates]:
            return f"the cost of {fresh[0]} is known now"
        situation = Situation(
            now,
            self._planned_at,
            {name: self._in_force.rates[name] for name in rates if name in self._in_force.rates},
            self._rates,
            self._planned,
            _outlook(self._in_force, workflow, pool),
            self._products,
            self.tuned_seconds,
        )
        return self.trigger.due(situation)

    def _shortage(self, now: float, workflow: Workflow, pool: Pool, plan: BatchPlan) -> str:
        if plan.holds or now - self._short_at < SHORTAGE_SECONDS:
            return ""
        self._short_at = now
        settled = workflow.settled
        if settled is workflow:
            return shortage_of(workflow, pool, plan).told()
        later = plan_batches(settled, pool)
        if later.holds:
            return f"while state is loaded no plan holds: {', '.join(plan.late)} will be late once"
        return shortage_of(settled, pool, later).told()


def _outlook(plan: BatchPlan, workflow: Workflow, pool: Pool) -> Outlook:
    """What the plan's batches lead to at the plan's rates, by the costs that the workflow has now."""
    stages = tuple(
        replace(stage, rows_per_second=stage.rows_per_second * plan.rates[stage.name] / rate)
        if stage.rows_per_second > 0.0
        else stage
        for stage, rate in zip(workflow.stages, workflow.rates, strict=True)
    )
    # The reserve is there for costs that vary: other batches are wanted where even all of it is too little.
    model = DelayModel(Workflow(stages, workflow.products), replace(pool, reserve=0.0))
    estimate = model.estimate([plan.rows.get(stage.name, 1) for stage in stages])
    return Outlook(estimate.ratio, model.fits(estimate))
