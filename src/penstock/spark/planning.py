"""Where plans meet the engine: measured rates and costs in, batch sizes out, each with its reason."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from math import inf

from penstock.measure.rates import Rate, RateMeter
from penstock.measure.turns import TurnRecord
from penstock.plan import BatchPlan, PlanError, Pool, Workflow, plan_batches, shortage_of
from penstock.plan.changes import PlanChange
from penstock.plan.from_graphs import workflow_of
from penstock.plan.triggers import EveryProduct, Situation, Trigger
from penstock.plan.workflow import RESERVE
from penstock.spark.dispatcher import Dispatcher
from penstock.spark.profiles import Profiles
from penstock.spark.running import RunningPipeline

log = logging.getLogger("penstock")

KEPT_PLANS = 1_000
SHORTAGE_SECONDS = 30.0
"""Between two looks at how much is short: they take many plans."""


class Planner:
    """Looks at rates and costs now and then, and plans anew when the trigger says so."""

    def __init__(
        self,
        trigger: Trigger,
        profiles: Profiles,
        dispatcher: Dispatcher,
        reserve: float = RESERVE,
        most_rows: int | None = None,
    ):
        """`most_rows` is for all batches together."""
        self.trigger = trigger
        self.planning_seconds = 0.0
        """Time spent so far: looking and planning."""
        self.changes: deque[PlanChange] = deque(maxlen=KEPT_PLANS)
        self.made = 0
        self._profiles = profiles
        self._dispatcher = dispatcher
        self._reserve = reserve
        self._most_rows = inf if most_rows is None else most_rows
        self._meters: dict[str, RateMeter] = {}
        self._rates: dict[str, Rate] = {}
        self._products = 0
        self._in_force: BatchPlan | None = None
        self._planned_at = 0.0
        self._planned_seconds: dict[str, float] = {}
        self._short_at = float("-inf")
        self._lock = threading.Lock()

    @property
    def plan(self) -> BatchPlan | None:
        """The plan in force."""
        return self._in_force

    def turn_ended(self, record: TurnRecord, pipelines: Sequence[RunningPipeline]) -> PlanChange | None:
        """A turn has ended; one that brought rows to a sink made a product. The change, if it led to one."""
        running = [each for each in pipelines if each.name == record.pipeline]
        makes = record.rows_out > 0 and any(
            stage.sink is not None and stage.name == record.stage
            for each in running
            for stage in each.graph.stages
        )
        if not makes:
            return None
        self._products += 1
        by_product = isinstance(self.trigger, EveryProduct)
        return self.look(self._dispatcher.clock(), pipelines) if by_product else None

    def look(self, now: float, pipelines: Iterable[RunningPipeline]) -> PlanChange | None:
        """Measures, and plans where that is due; the change, if there is one."""
        began = time.perf_counter()
        with self._lock:
            change = self._look(now, tuple(pipelines))
            self.planning_seconds += time.perf_counter() - began
        if change is not None:
            self._dispatcher.put_in_force(change.rows)
            log.info("planned: %s", change.reason)
            if change.shortage:
                log.warning("%s", change.shortage)
        return change

    def _look(self, now: float, pipelines: tuple[RunningPipeline, ...]) -> PlanChange | None:
        self._measure(now, pipelines)
        rates = {name: max(rate.quick, rate.steady) for name, rate in self._rates.items()}
        workflow = workflow_of([each.graph for each in pipelines if each.stages], self._profiles.of, rates)
        if not workflow.stages:
            return None
        reason = self._reason(now, workflow)
        if not reason:
            return None
        pool = Pool(self._dispatcher.slots, self._reserve, self._most_rows)
        try:
            plan = plan_batches(workflow, pool)
        except PlanError as error:
            log.warning("no plan could be made: %s", error)
            return None
        self.made += 1
        self._in_force, self._planned_at, self._products = plan, now, 0
        self._planned_seconds = _turn_seconds(workflow, plan)
        change = PlanChange.of(plan, now, reason, self._shortage(now, workflow, pool, plan))
        self.changes.append(change)
        return change

    def _measure(self, now: float, pipelines: Iterable[RunningPipeline]) -> None:
        stages = {stage.name: stage for each in pipelines for stage in tuple(each.stages)}
        for name, stage in stages.items():
            offered = stage.books.rows_offered
            meter = self._meters.setdefault(name, RateMeter(0.0, stage.books.started_at))
            self._rates[name] = meter.look(offered, now)
        for name in self._meters.keys() - stages.keys():
            del self._meters[name]
            self._rates.pop(name, None)

    def _reason(self, now: float, workflow: Workflow) -> str:
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
            self._planned_seconds,
            _turn_seconds(workflow, self._in_force),
            self._products,
        )
        return self.trigger.due(situation)

    def _shortage(self, now: float, workflow: Workflow, pool: Pool, plan: BatchPlan) -> str:
        if plan.holds or now - self._short_at < SHORTAGE_SECONDS:
            return ""
        self._short_at = now
        return shortage_of(workflow, pool, plan).told()


def _turn_seconds(workflow: Workflow, plan: BatchPlan) -> dict[str, float]:
    return {
        stage.name: stage.turn_seconds(plan.rows[stage.name])
        for stage in workflow.stages
        if stage.name in plan.rows
    }
