"""What an engine does every second: looks after its pipelines, plans, and keeps what people ask for later."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from penstock.measure.turns import TurnRecord
from penstock.plan.changes import PlanChange
from penstock.spark.kept_arrivals import KeptArrivals
from penstock.spark.kept_lines import KeptLines
from penstock.spark.minutes import Minutes
from penstock.spark.planning import Planner
from penstock.spark.promise_watch import PromiseWatch
from penstock.spark.query import queries_alive
from penstock.spark.running import RunningPipeline, share_out
from penstock.spark.sink_spans import SinkSpans
from penstock.spark.slot_control import SlotControl
from penstock.spark.surroundings import Surroundings
from penstock.spark.turn_lines import TurnLines
from penstock.stages.stage import first_stages

log = logging.getLogger("penstock")

EVERY_SECONDS = 1.0
KEEP_AFTER_TURNS = 100
"""So many turns are learned from before what they cost is written down."""


class Housekeeping:
    """Runs in the dispatcher's threads until it is ended; failing at it stops nothing."""

    def __init__(
        self,
        around: Surroundings,
        planner: Planner | None,
        slot_control: SlotControl,
        pipelines: Callable[[], tuple[RunningPipeline, ...]],
    ):
        self._around = around
        self._dispatcher = around.dispatcher
        self._planner = planner
        self._slot_control = slot_control
        self._pipelines = pipelines
        self._told = 0.0
        self._ended = False
        self._keeping = threading.Lock()
        now = self._dispatcher.clock()
        self._plans = KeptLines(around.folder, "plans")
        self._decisions = KeptLines(around.folder, "decisions")
        self._turns = TurnLines(KeptLines(around.folder, "turns"))
        around.listeners.append(self._turns)
        self._sinks = SinkSpans(KeptLines(around.folder, "sinks"), now)
        self._minutes = Minutes(KeptLines(around.folder, "minutes"), self._slots, now)
        self._promises = PromiseWatch(self._slots, around.profiles, now)
        self._arrivals = KeptArrivals(around.folder)
        if planner is not None:
            self._arrivals.restore(planner.history, now)
            around.listeners.append(self._turn_ended)
        self._dispatcher.at(now, self._keep_house)

    def end(self) -> None:
        """Looks after nothing any more."""
        self._ended = True
        self.keep_records()

    def _slots(self) -> int:
        """A pool that has none now is told of as one of one slot: shares of nothing are none."""
        return max(self._dispatcher.slots, 1)

    def _keep_house(self) -> None:
        if self._ended:
            return
        try:
            for chore in (self._look_after_all, self._plan, self._control_slots, self._watch_promises):
                try:
                    chore()
                except Exception as error:
                    log.warning("housekeeping failed and is tried again: %s", error)
            self.keep_records()
        finally:
            self._dispatcher.at(self._dispatcher.clock() + EVERY_SECONDS, self._keep_house)

    def _look_after_all(self) -> None:
        alive = queries_alive(self._around.session)
        for running in self._pipelines():
            self._look_after(running, alive)
        self._around.profiles.refresh(running.graph for running in self._pipelines())
        # One may have failed, or gone on after that.
        share_out(self._pipelines())

    def _plan(self) -> None:
        if self._planner is not None:
            self._keep(self._planner.look(self._dispatcher.clock(), self._pipelines()))

    def _control_slots(self) -> None:
        self._slot_control.look(self._dispatcher.clock(), self._pipelines())

    def _watch_promises(self) -> None:
        self._promises.look(self._dispatcher.clock(), self._pipelines())

    def _turn_ended(self, record: TurnRecord) -> None:
        if self._planner is not None:
            self._keep(self._planner.turn_ended(record, self._pipelines()))

    def _keep(self, change: PlanChange | None) -> None:
        if change is not None:
            self._plans.add([change.to_json()])
            held = "" if change.holds else f"; {change.shortage or 'no plan holds'}"
            became = f"{len(change.rows)} batches, {change.busy_slots:.2f} slots busy{held}"
            self._around.changes.tell("plan", "batches", became, change.reason)

    def _look_after(self, running: RunningPipeline, alive: frozenset[str]) -> None:
        try:
            if running.stages:
                running.check(alive)
            running.do_as_asked()
        except Exception as error:
            log.error("pipeline %r could not be looked after: %s", running.name, error)

    def keep_records(self, *, last: bool = False) -> None:
        """Keeps decisions, figures and costs where `penstock explain` and the next run find them."""
        with self._keeping:
            self._keep_records(last)

    def _keep_records(self, last: bool) -> None:
        try:
            fresh = self._dispatcher.since(self._told)
            if fresh:
                self._told = fresh[-1].at
                self._decisions.add(each.to_json() for each in fresh)
            books = [stage.books for running in self._pipelines() for stage in tuple(running.stages)]
            first = frozenset(name for each in self._pipelines() for name in first_stages(each.graph))
            self._minutes.look(self._dispatcher.clock(), books, first=first, last=last)
            self._sinks.look(self._dispatcher.clock(), self._pipelines(), last=last or self._ended)
            self._turns.keep()
            if self._planner is not None:
                self._arrivals.keep(self._planner.history, self._dispatcher.clock(), last=last)
            self._around.profiles.keep(after_turns=1 if last else KEEP_AFTER_TURNS)
        except Exception as error:
            log.warning("decisions and figures could not be kept: %s", error)
