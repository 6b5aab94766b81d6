"""Where plans meet the engine: measured rates and costs in, batch sizes out, each with its reason."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence

from penstock.measure.turns import TurnRecord
from penstock.plan import BatchPlan
from penstock.plan.arrival_history import ArrivalHistory
from penstock.plan.changes import PlanChange
from penstock.plan.planner import BatchPlanner, Offered, PlanLook
from penstock.plan.triggers import EveryProduct, Trigger
from penstock.plan.workflow import RESERVE
from penstock.spark.dispatcher import Dispatcher
from penstock.spark.profiles import Profiles
from penstock.spark.running import RunningPipeline

log = logging.getLogger("penstock")


class Planner:
    """Lets a planner look at the running pipelines, and puts in force what it plans."""

    def __init__(
        self,
        trigger: Trigger,
        profiles: Profiles,
        dispatcher: Dispatcher,
        reserve: float = RESERVE,
        most_rows: int | None = None,
    ):
        """`most_rows` is for all batches together."""
        self.planning_seconds = 0.0
        """Time spent so far: looking and planning."""
        self._batches = BatchPlanner(trigger, reserve, most_rows)
        self._exact = most_rows is not None
        self._profiles = profiles
        self._dispatcher = dispatcher
        self._lock = threading.Lock()

    @property
    def trigger(self) -> Trigger:
        return self._batches.trigger

    @property
    def plan(self) -> BatchPlan | None:
        """The plan in force."""
        return self._batches.plan

    @property
    def changes(self) -> deque[PlanChange]:
        """The last plans that were put in force."""
        return self._batches.changes

    @property
    def history(self) -> ArrivalHistory:
        """How rows came, second by second."""
        return self._batches.history

    @property
    def made(self) -> int:
        """How many plans were made."""
        return self._batches.made

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
        self._batches.product_made()
        by_product = isinstance(self.trigger, EveryProduct)
        return self.look(self._dispatcher.clock(), pipelines) if by_product else None

    def look(self, now: float, pipelines: Iterable[RunningPipeline]) -> PlanChange | None:
        """Measures, and plans where that is due; the change, if there is one."""
        began = time.perf_counter()
        with self._lock:
            change = self._look(now, tuple(pipelines))
            self.planning_seconds += time.perf_counter() - began
        if change is not None:
            # A limit on rows would be none if a backlog stretched turns beyond it.
            self._dispatcher.put_in_force(change.rows, exact=self._exact)
            log.info("planned: %s", change.reason)
            if change.shortage:
                log.warning("%s", change.shortage)
        return change

    def _look(self, now: float, pipelines: tuple[RunningPipeline, ...]) -> PlanChange | None:
        if self._dispatcher.slots == 0:
            return None
        stages = [stage for each in pipelines for stage in tuple(each.stages)]
        offered = {stage.name: Offered(stage.books.rows_offered, stage.books.started_at) for stage in stages}
        graphs = tuple(each.graph for each in pipelines if each.stages)
        slots = {stage.name: stage.slots for stage in stages}
        starting = frozenset(stage.name for stage in stages if stage.loads_state)
        pool = self._dispatcher.slots
        return self._batches.look(PlanLook(now, graphs, self._profiles.of, offered, pool, slots, starting))
