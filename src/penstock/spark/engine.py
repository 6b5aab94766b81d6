"""The engine: many pipelines on one Spark application, one scheduler for all of them."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from penstock.errors import PenstockError
from penstock.measure.slot_figures import SlotMeasuring
from penstock.measure.turns import TurnRecord
from penstock.pipeline.checks import FloorTable
from penstock.pipeline.endpoints import SinkSpec
from penstock.pipeline.latency import Duration, format_seconds, parse_latency, parse_positive
from penstock.pipeline.pipeline import Pipeline
from penstock.plan.controller_state import SlotSettings
from penstock.plan.slot_changes import SlotChange
from penstock.plan.triggers import parse_trigger
from penstock.plan.workflow import RESERVE, Pool
from penstock.queues.owner import OwnerLock
from penstock.scheduling.catalog import policy_named
from penstock.scheduling.consumption import Planned, parse_consumption
from penstock.scheduling.policies import BatchIt, Policy
from penstock.scheduling.scheduler import Scheduler
from penstock.spark.adopted import AdoptedQuery, adopted_pipeline
from penstock.spark.change_log import ChangeLog
from penstock.spark.checkpoint import StateStore
from penstock.spark.cluster.pool import first_slots, is_local
from penstock.spark.dispatcher import Dispatcher
from penstock.spark.elastic import Elastic, ElasticSettings, check_elastic
from penstock.spark.engine_reports import EngineReports
from penstock.spark.feeders import wait_for
from penstock.spark.housekeeping import Housekeeping
from penstock.spark.kept_lines import KeptLines
from penstock.spark.planning import Planner
from penstock.spark.profiles import Profiles
from penstock.spark.promise_watch import known_to_be_late
from penstock.spark.rescaling import ASKED_FOR, Rescaler
from penstock.spark.running import RunningPipeline, share_out
from penstock.spark.session import build_session, prepare_session, session_warnings
from penstock.spark.slot_control import SlotControl, check_control
from penstock.spark.surroundings import Surroundings, anywhere, no_cold_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("penstock")

# Least seconds of a turn, warm, on a 2-core machine (`penstock bench turns`).
FLOORS = FloorTable(direct=0.015, held=0.030)
STOP_SECONDS = 90.0
PROFILES = "profiles.json"


class Engine(EngineReports):
    """Runs pipelines under one scheduler.

    Without `state` everything lies in a temporary directory that goes with the engine; with it, a
    restart goes on where the last run ended. A session of the user's own is accepted; settings of
    it that cost latency are warned of. A stage whose output queue holds `queue_limit_bytes` or more
    gets no turn until the queue's consumers have caught up.

    A turn is cut to what is predicted to take a `grain`. Under policies that go by contexts (llf, edf, sjf,
    token-share) and under batchit a stage that has waited for `patience` goes before all that have waited
    less, so that none starves.

    With consumption "planned", which goes with policy batchit, a turn takes a batch, its size planned from
    measured costs, rates and targets. `planning` says when anew: "conditional" (rates or costs have left the
    range the plan was made for), "product" (after every result), a period such as "10s", or "tuned" (on one
    that follows from how rows came over the last day). A plan leaves the share `plan_reserve` of the slots
    free, and has at most `plan_rows` rows in all batches together.

    `state_store` is for state that is new: "heap" is quicker for little of it; only with "rocksdb" can the
    slots of a stage with state be changed. Without it the session's setting counts (by the preset, heap).

    With `slot_control` (for all pipelines, or by name) slots of stages are changed as measured latency asks
    for, at most once in an interval of `slot_measuring`; new state then lies in RocksDB.

    With a `master` such as spark://HOST:PORT the turns run on that cluster, on workers of one `region` if it
    is named. The pool is then as large as what is registered now, and `slots` bounds it. All workers must
    reach the state directory under the same path. With `elastic`, managers of replicas and nodes change the
    slots of stages and the nodes of the cluster (docs/elastic.md); new state then lies in RocksDB.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        state: str | Path | None = None,
        master: str | None = None,
        region: str | None = None,
        elastic: ElasticSettings | None = None,
        slots: int | None = None,
        policy: str | Policy = "llf",
        consumption: str | None = None,
        planning: str | None = None,
        plan_reserve: float = RESERVE,
        plan_rows: int | None = None,
        grain: Duration = "1s",
        patience: Duration = "30s",
        fsync: bool = False,
        queue_limit_bytes: int | None = None,
        state_store: StateStore | None = None,
        slot_control: SlotSettings | Mapping[str, SlotSettings] | None = None,
        slot_measuring: SlotMeasuring | None = None,
        clock: Callable[[], float] = time.time,
    ):
        _check_state(state)
        _check_session(spark, master, region)
        # Refuses what cannot be, before anything is opened.
        Pool(1 if slots is None else slots, plan_reserve)
        chosen = policy_named(policy) if isinstance(policy, str) else policy
        by_plan = isinstance(chosen, BatchIt)
        consumes = parse_consumption(consumption or ("planned" if by_plan else "all"))
        planned = by_plan or isinstance(consumes, Planned) or planning is not None
        trigger = parse_trigger(planning or "conditional")
        patience_seconds = parse_positive(patience, "patience", "every stage would be the first in line")
        grain_seconds = parse_positive(grain, "grain", "no turn would take a row")
        self._temporary = (
            None if state else tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True)
        )
        self.state = Path(state or self._temporary.name).absolute()  # type: ignore[union-attr]
        self.spark = spark or build_session(cores=slots, master=master, region=region, state=self.state)
        if spark is not None:
            for warning in session_warnings(spark):
                log.warning("%s", warning)
        prepare_session(self.spark)
        if is_local(self.spark):
            check_control(slot_control, slots or self.spark.sparkContext.defaultParallelism)
        check_elastic(elastic, self.spark, region, slot_control)
        self._owner = OwnerLock(self.state)
        self.pool, first = first_slots(self.spark, self.state, self._owner, slots)
        """The slots of the cluster, where there is one."""
        scheduler = Scheduler(
            chosen,
            max(first, 1),
            consumes,
            patience_seconds=patience_seconds,
            grain_seconds=grain_seconds,
        )
        scheduler.resize(first)
        self._dispatcher = Dispatcher(scheduler, clock)
        self._around = Surroundings(
            self.spark,
            self._dispatcher,
            self.state,
            fsync,
            queue_limit_bytes,
            profiles=Profiles(self.state / PROFILES),
            state_store=state_store or ("rocksdb" if slot_control or elastic else None),
            measuring=slot_measuring or SlotMeasuring(),
            on_cluster=self.pool is not None,
            cold_tasks=no_cold_tasks if self.pool is None else self.pool.watch.cold_tasks,
            reach=anywhere if self.pool is None else self.pool.check,
            changes=ChangeLog(self.state, clock),
        )
        self.planner = (
            Planner(trigger, self._around.profiles, self._dispatcher, plan_reserve, plan_rows)
            if planned
            else None
        )
        """Who plans the sizes of batches, if somebody does."""
        self._pipelines: dict[str, RunningPipeline] = {}
        self._closed = False
        self._rescaler = Rescaler(KeptLines(self.state, "slots"), self._dispatcher, self._around.changes)
        self._slot_control = SlotControl(slot_control, self._rescaler, self._dispatcher)
        self._house = Housekeeping(self._around, self.planner, self._slot_control, lambda: self._all)
        if self.pool is not None:
            self.pool.follow(self._dispatcher)
        self.elastic = self._managers(elastic)
        """Who manages replicas and nodes, if somebody does."""

    def _managers(self, settings: ElasticSettings | None) -> Elastic | None:
        if settings is None:
            return None
        elastic = Elastic(settings, settings.actuator(self.pool), self._around, self, lambda: self._all)
        elastic.follow()
        return elastic

    def submit(self, pipeline: Pipeline, *, resume: bool = False) -> RunningPipeline:
        """Starts a pipeline beside those that run; `resume` goes on after a failure."""
        if pipeline.name in self._pipelines and self._pipelines[pipeline.name].state != "stopped":
            raise PenstockError(
                f"pipelines of an engine must have names of their own, got {pipeline.name!r} twice: "
                "cancel that one first"
            )
        for warning in (*pipeline.check(FLOORS), *known_to_be_late(pipeline, self._around.profiles)):
            log.warning("%s", warning)
        running = RunningPipeline(pipeline, self._around)
        if self.elastic is not None:
            self.elastic.check(running)
        running.start(resume=resume)
        self._pipelines[pipeline.name] = running
        share_out(self._all)
        self._around.changes.tell("state", pipeline.name, "running", "submitted")
        return running

    def start(
        self,
        frame: DataFrame,
        sink: SinkSpec | Callable[[DataFrame, int], None],
        *,
        latency: Duration | None = None,
        name: str = "query",
        output_mode: str = "append",
        slots: int = 1,
    ) -> RunningPipeline:
        """Puts a streaming DataFrame of the user's own under the scheduler.

        `sink` is one of penstock.sinks, or a function as foreachBatch takes it.
        """
        query = AdoptedQuery(frame, output_mode)
        return self.submit(adopted_pipeline(name, query, sink, latency, slots))

    def pause(self, name: str) -> None:
        """Grants the pipeline no more turns; its queues fill."""
        self._running(name).pause(True)
        self._around.changes.tell("state", name, "paused", "asked for")

    def resume(self, name: str) -> None:
        """Goes on with a paused pipeline, or with one that failed."""
        running = self._running(name)
        if running.state == "failed":
            if not wait_for(lambda: not running.stages, STOP_SECONDS):
                raise PenstockError(
                    f"pipeline {name!r} must have stopped before it goes on, but a turn of it still runs: "
                    "try again later"
                )
            running.start(resume=True)
            share_out(self._all)
        else:
            running.pause(False)
        self._around.changes.tell("state", name, "running", "asked for")

    def set_latency(self, name: str, sink: str, latency: Duration) -> None:
        """Changes the target of a sink while its pipeline runs; the next engine goes by the declared one."""
        seconds = parse_latency(latency)
        self._running(name).set_latency(sink, seconds)
        self._around.changes.tell("target", f"{name}.{sink}", format_seconds(seconds), "asked for")

    def clear_dead_letters(self, name: str) -> int:
        """Removes the bad and late rows that a running pipeline has put aside so far; how many."""
        return self._running(name).clear_dead_letters(self._dispatcher.clock())

    def cancel(self, name: str, *, forget: bool = False) -> None:
        """Ends a pipeline; `forget` removes its state too."""
        running = self._running(name)
        running.stop(forget=forget)
        if forget:
            self._around.profiles.forget(stage.name for stage in running.graph.stages)
        del self._pipelines[name]
        share_out(self._all)
        self._around.changes.tell("state", name, "cancelled", "forgotten" if forget else "asked for")

    def drain(self, timeout_seconds: float = 60.0) -> None:
        """Returns when nothing waits and no turn runs; a replay must end by itself for that.

        A block that is not complete runs as it is, once nothing else has anything to do.
        """
        try:
            drained = wait_for(self._idle, timeout_seconds)
        finally:
            self._dispatcher.drain(False)
        busy = [] if drained else [_busy(running) for running in self._all if not running.idle]
        if busy:
            raise PenstockError(f"pipelines must be idle within {timeout_seconds:g} s, but {'; '.join(busy)}")

    def _idle(self) -> bool:
        for running in self._pipelines.values():
            if running.state == "failed":
                raise running.error or PenstockError(f"pipeline {running.name!r} failed")
        self._dispatcher.drain(all(feeder.done for running in self._all for feeder in running.feeders))
        return all(running.idle for running in self._all)

    def reschedule(self, *, policy: str | Policy | None = None, consumption: str | None = None) -> None:
        """Goes on under another policy, another consumption, or both, from the next turn on."""
        chosen = policy_named(policy) if isinstance(policy, str) else policy
        self._dispatcher.reschedule(chosen, parse_consumption(consumption) if consumption else None)
        became = " and ".join(str(each) for each in (chosen, consumption) if each)
        self._around.changes.tell("policy", "the pool", became, "asked for")

    def fix_batches(self, rows: Mapping[str, int]) -> None:
        """Lets turns of these stages take so many rows and no more, until the next plan.

        With consumption "planned", and a `planning` that is not due soon.
        """
        self._dispatcher.put_in_force(rows, exact=True)

    def set_slots(self, slots: Mapping[str, int], reason: str = ASKED_FOR) -> tuple[SlotChange, ...]:
        """Lets running stages, as {"pipeline.stage": k}, go on with k tasks a turn, also after a restart.

        A stage without state changes at its next turn. One with state gets no turn while Spark divides its
        state anew, which must lie in RocksDB. Returns when all have changed; what changed, and the pauses.
        """
        return self._rescaler.apply(self._all, slots, reason)

    def keep_profiles(self, state: Path) -> None:
        """Lets engines on another state directory know what the stages of this one cost."""
        self._around.profiles.keep_in(state / PROFILES)

    def on_turn(self, listener: Callable[[TurnRecord], None]) -> None:
        """Calls `listener` with the record of every turn from now on; one that fails is detached."""
        self._around.listeners.append(listener)

    def stop(self) -> None:
        """Lets running turns end, then closes everything; the session stays."""
        if self._closed:
            return
        self._closed = True
        self._house.end()
        if self.elastic is not None:
            self.elastic.close()
        for running in self._all:
            try:
                running.stop()
            except Exception:
                log.exception("pipeline %r did not stop cleanly", running.name)
        self._house.keep_records(last=True)
        self._dispatcher.close()
        if self.pool is not None:
            self.pool.close()
        self._owner.release()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _busy(running: RunningPipeline) -> str:
    """Why a pipeline is not idle."""
    feeds = not all(feeder.done for feeder in running.feeders)
    waiting = running.rows_waiting
    why = ""
    if feeds:
        why = ", and its source goes on"
    elif away := sorted(running.away):
        why = f", and {', '.join(away)} is not there"
    elif not waiting:
        why = ", but a turn runs, or its source has more that was not seen yet"
    return f"{running.name!r} has {waiting:,} rows waiting{why}"


def _check_session(spark: SparkSession | None, master: str | None, region: str | None) -> None:
    if spark is not None and (master or region):
        raise PenstockError(
            f"a master and a region must be for a session that Penstock starts, got {master or region!r} "
            "with a session that runs already: it has its own"
        )


def _check_state(state: str | Path | None) -> None:
    if isinstance(state, str) and "://" in state:
        raise PenstockError(
            f"the state directory must be a path on this machine or mounted on it, got {state!r}: "
            "queues are written and renamed as plain files"
        )
