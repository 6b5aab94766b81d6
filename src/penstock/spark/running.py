"""A pipeline that runs: its spools, its stages, its feeders, and what becomes of it when one fails."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.pipeline.pipeline import Pipeline
from penstock.queues.disk import Disk
from penstock.queues.spool import Spool
from penstock.spark.away import away_from
from penstock.spark.blame import blame
from penstock.spark.compile import Compiler, RunningStage
from penstock.spark.dead_letters import clear_request, dead_letters_in
from penstock.spark.ends import QueueEnd
from penstock.spark.feeder_catalog import QueueFeeder
from penstock.spark.native import NativeStage
from penstock.spark.open_queues import OpenQueues, folders_outside
from penstock.spark.query import queries_alive
from penstock.spark.refusals import AnotherVersion, PipelineFailed, read_json
from penstock.spark.slot_meters import SlotMeters
from penstock.spark.slots_in_force import SlotsInForce
from penstock.spark.stage_base import Place
from penstock.spark.surroundings import PipelineState, Surroundings
from penstock.stages.fingerprint import describe, differences
from penstock.stages.fuse import cut
from penstock.stages.stage import first_stages
from penstock.stages.targets import with_target

log = logging.getLogger("penstock")

LOOK_SECONDS, LOOKS_TO_TELL = 1.0, 60
"""How often a query is looked after while its turn is waited for, and after how many looks that is told."""


class RunningPipeline:
    """One submitted pipeline. Its state lies in a folder of its own, and a restart goes on from there."""

    def __init__(self, pipeline: Pipeline, around: Surroundings):
        self.pipeline = pipeline
        self.name = pipeline.name
        self.graph = cut(pipeline)
        self.folder = around.folder / pipeline.name
        self.state: PipelineState = "stopped"
        self.error: BaseException | None = None
        self._failing = False
        self.stages: list[RunningStage] = []
        self.meters = SlotMeters(self.graph, around.dispatcher.clock(), around.measuring)
        self._around = around
        self._queues = OpenQueues(self.graph, self.folder / "queues", around)
        self._disk = Disk(around.fsync)
        self._slots = SlotsInForce(self.folder / "slots.json", self._disk)
        self._lock = threading.RLock()
        self._stopping = threading.Lock()

    @property
    def feeders(self) -> Sequence[QueueFeeder]:
        """Those that bring rows into its queues."""
        return self._queues.feeders

    @property
    def _failure(self) -> Path:
        return self.folder / "failed.json"

    @property
    def _request(self) -> Path:
        """Made by `penstock resume`."""
        return self.folder / "resume"

    def start(self, *, resume: bool = False) -> None:
        """Opens the state, recovers what a crash left, and lets the stages be scheduled."""
        begun = False
        is_first = not self._version.exists()
        try:
            with self._lock:
                self._check_may_start(resume)
                begun = True
                self._open()
                self._keep_version()
                self._failure.unlink(missing_ok=True)
                self.state, self.error = "running", None
                self._launch()
        except BaseException:
            # Not under the lock: a turn that was granted already must be able to fail.
            if begun:
                self.state = "stopped" if self.state == "running" else self.state
                # One that has never run needs nothing that was kept for it.
                self._end_stages(forget=is_first and not self._version.exists())
            raise

    def _check_may_start(self, resume: bool) -> None:
        if self.stages:
            raise PenstockError(
                f"pipeline {self.name!r} must have stopped before it starts, but runs: nothing changed"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_version()
        resume = resume or self._request.exists()
        self._request.unlink(missing_ok=True)
        if self._failure.exists() and not resume:
            raise PipelineFailed(self.name, read_json(self._failure)["reason"])

    @property
    def _version(self) -> Path:
        """The shape that its state belongs to."""
        return self.folder / "pipeline.json"

    def _check_version(self) -> None:
        if self._version.exists() and (
            changes := differences(read_json(self._version), describe(self.graph))
        ):
            raise AnotherVersion(self.name, self.folder, changes)

    def _keep_version(self) -> None:
        """Before the first turn: one that cannot even be opened may still change."""
        if not self._version.exists():
            self._disk.replace(self._version, json.dumps(describe(self.graph), indent=1).encode())

    def _open(self) -> None:
        compiler = Compiler(self._queues.spools, self._queues.subscribe, {}, self._disk, {})
        for folder, what in folders_outside(self.graph, self._around.folder):
            self._around.reach(folder, what)
        self._queues.open(compiler)
        started_at = self._around.dispatcher.clock()
        slots = self._slots.read()
        self.meters = SlotMeters(self.graph, started_at, self._around.measuring)
        for stage in self.graph.stages:
            place = Place(
                name=stage.name,
                pipeline=self.name,
                slots=slots.get(stage.name, stage.parallelism),
                latency_seconds=stage.latency_seconds,
                folder=self.folder / "stages" / stage.name.split(".", 1)[1],
                session=self._around.session,
                dispatcher=self._around.dispatcher,
                failed=self._failed,
                java_context=self._around.session.sparkContext._jsc,
                listeners=self._around.listeners,
                started_at=started_at,
                profiles=self._around.profiles,
                meters=self.meters,
                depth=stage.depth,
                tenant=self.pipeline.tenant.name,
                share=self._share,
                block_rows=stage.block_rows,
                state_store=self._around.state_store,
                on_cluster=self._around.on_cluster,
                cold_tasks=self._around.cold_tasks,
            )
            place.folder.mkdir(parents=True, exist_ok=True)
            self.stages.append(compiler.compile(stage, place))
        self._link()
        # State that was divided says more than what was written down after it.
        told = {stage.name: slots.get(stage.name, stage.parallelism) for stage in self.graph.stages}
        self._slots.keep({each.name: each.slots for each in self.stages if each.slots != told[each.name]})
        for running in self.stages:
            running.show_again()
        for spool in self._queues.own:
            spool.discard_pending()

    @property
    def _share(self) -> float | None:
        """The tenant's, divided among the stages that rows come to first."""
        share = self.pipeline.tenant.share
        return None if share is None else share / max(len(first_stages(self.graph)), 1)

    def share_with(self, pipelines: int) -> None:
        """So many of the tenant's pipelines, this one among them, have its share together."""
        share = self._share
        if share is not None:
            for stage in tuple(self.stages):
                stage.line.give(share / pipelines)

    def _link(self) -> None:
        """Lets each stage know those that it replies to."""
        by_name = {stage.name: stage for stage in self.stages}
        for stage in self.graph.stages:
            for below in self.graph.below(stage, loops=False):
                by_name[below.name].above += (by_name[stage.name],)

    def _launch(self) -> None:
        dispatcher = self._around.dispatcher
        for stage in self.stages:
            for queue in stage.consumers:
                if queue in self._queues.spools:
                    self._queues.listen(self._queues.spools[queue], partial(dispatcher.changed, stage))
            end = stage.destination.end
            if isinstance(end, QueueEnd) and end.spool.free_bytes is not None:
                self._queues.listen(end.spool, partial(dispatcher.changed, stage), to_room=True)
                if end.spool not in self._queues.own:
                    # Others may fill it while the stage waits.
                    self._queues.listen(end.spool, partial(dispatcher.changed, stage))
            dispatcher.add(stage)
            if isinstance(stage, NativeStage):
                dispatcher.submit(partial(self._start_query, stage))
        for feeder in self.feeders:
            feeder.start()

    def _start_query(self, stage: NativeStage) -> None:
        try:
            stage.start()
        except Exception as error:
            self._failed(stage, error)

    def _failed(self, stage: RunningStage, error: BaseException) -> None:
        """The pipeline stops; the others go on. Called from the turn that failed."""
        with self._lock:
            if self._failing or self.state in ("failed", "stopped"):
                return
            self._failing = True
        declared = self.graph.stage(stage.name)
        try:
            self.error = blame(declared, error, stage.runs_before)
        except Exception:
            self.error = blame(declared, error, None)
        log.error("%s", self.error)
        self._around.changes.tell("state", self.name, "failed", str(self.error))
        record = {"stage": stage.name, "reason": str(self.error), "at": self._around.dispatcher.clock()}
        try:
            self._disk.replace(self._failure, json.dumps(record).encode())
        except OSError as full:
            log.error("the failure of pipeline %r could not be recorded: %s", self.name, full)
        # Whoever sees it failed finds the reason on disk.
        self.state, self._failing = "failed", False
        for each in self.stages:
            self._around.dispatcher.remove(each)
        threading.Thread(target=self._stop_all, name=f"penstock-stop-{self.name}", daemon=True).start()

    def pause(self, paused: bool) -> None:
        """Stops granting turns, or goes on; sources that Penstock plays stop too."""
        with self._lock:
            if self.state not in ("running", "paused"):
                raise PenstockError(
                    f"pipeline {self.name!r} must run or be paused for that, but is {self.state}: "
                    "nothing was changed"
                )
            self.state = "paused" if paused else "running"
            for feeder in self.feeders:
                feeder.pause(paused)
            for stage in self.stages:
                stage.paused = paused
                self._around.dispatcher.changed(stage)

    def rescale(self, stage: RunningStage, slots: int) -> float:
        """Lets a stage go on with so many slots, also after a restart; the seconds without a turn."""
        if self.state not in ("running", "paused"):
            raise PenstockError(
                f"pipeline {self.name!r} must run or be paused for its slots to change, but is {self.state}: "
                "nothing was changed"
            )
        pause = stage.rescale(slots)
        self._slots.keep({stage.name: slots})
        return pause

    def set_latency(self, sink: str, latency_seconds: float) -> None:
        """Wants the rows at a sink within another time from now on; the stages above it go by it too."""
        with self._lock:
            try:
                self.graph = with_target(self.graph, sink, latency_seconds)
            except KeyError:
                known = sorted(stage.sink.name for stage in self.graph.stages if stage.sink is not None)
                raise PenstockError(
                    f"pipeline {self.name!r} has no sink {sink!r}, of {known}: no target was changed"
                ) from None
            for stage in self.stages:
                stage.aim(self.graph.stage(stage.name).latency_seconds)
                self._around.dispatcher.changed(stage)

    def stop(self, *, forget: bool = False) -> None:
        """Lets running turns end, commits what they did, and closes the state; `forget` removes it."""
        failed = self.state == "failed"
        self._end_stages(forget)
        if not failed:
            self.state = "stopped"
        if forget:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _end_stages(self, forget: bool = False) -> None:
        with self._lock:
            for stage in self.stages:
                self._around.dispatcher.remove(stage)
        self._stop_all(forget)

    def _stop_all(self, forget: bool = False) -> None:
        # Not under the lock: a turn that fails meanwhile must be able to say so.
        with self._stopping:
            self._queues.end_feeders()
            for stage in self.stages:
                self._wait_for_end(stage)
                try:
                    stage.stop()
                except Exception as error:
                    log.warning("stage %r did not stop cleanly: %s", stage.name, error)
            self._close(forget)

    def _wait_for_end(self, stage: RunningStage) -> None:
        """Of a turn; its query is looked after meanwhile, as nobody else may do so any more."""
        for looked in count(1):
            if self._around.dispatcher.wait_for_end(stage, LOOK_SECONDS):
                return
            if looked % LOOKS_TO_TELL == 0:
                log.warning("stage %r is still in a turn: its pipeline stops when that ends", stage.name)
            try:
                stage.check(queries_alive(self._around.session))
            except Exception as error:
                if stage.books.kind == "held":
                    log.warning("the query of stage %r cannot be asked any more: %s", stage.name, error)
                    return

    def _close(self, forget: bool = False) -> None:
        self._queues.close(forget)
        self.stages = []

    def check(self, alive: frozenset[str]) -> None:
        """Looks after held queries: one that is not among the runs alive stops the pipeline."""
        for stage in tuple(self.stages):
            stage.check(alive)

    @property
    def _dead(self) -> Sequence[Spool]:
        return [spool for spool in self._queues.own if self.graph.queues[spool.name].dead_letters]

    def dead_letters(self) -> pa.Table:
        """All bad and late rows that are kept: `dead_letter` (the reason) and `raw`."""
        return dead_letters_in(self._dead)

    def clear_dead_letters(self, put_aside_by: float) -> int:
        """Removes the bad and late rows that were put aside by then; how many."""
        removed = sum(spool.clear(put_aside_by) for spool in self._dead)
        self._around.changes.tell("dead letters", self.name, f"{removed:,} removed", "asked for")
        return removed

    def do_as_asked(self) -> None:
        """What a command has left a request for: to go on after a failure, or to remove dead letters."""
        if self.state == "failed" and not self.stages and self._request.exists():
            self.start(resume=True)
        request = clear_request(self.folder)
        if self.stages and request.exists():
            self.clear_dead_letters(float(request.read_text()))
            request.unlink()

    @property
    def away(self) -> frozenset[str]:
        """Its sources, sinks and topics between stages whose broker is not there now."""
        return self._queues.away | away_from(tuple(self.stages), self.graph)

    @property
    def rows_waiting(self) -> int:
        return sum(stage.rows_waiting for stage in tuple(self.stages))

    @property
    def idle(self) -> bool:
        """Whether no row waits, no turn runs, and every replay that ends has ended."""
        with self._lock:
            if not all(feeder.done for feeder in self.feeders) or self.rows_waiting:
                return False
            if not self._at_rest:
                return False
            stages = tuple(self.stages)
        # Not under the lock: looks may take seconds, and what they find may stop the pipeline. It may be in a
        # turn already, or have gone through it to the next queue.
        return all(stage.read_up for stage in stages) and self._at_rest

    @property
    def _at_rest(self) -> bool:
        busy = any(stage.changing or self._around.dispatcher.busy(stage) for stage in self.stages)
        return not self.rows_waiting and not busy


def share_out(pipelines: Iterable[RunningPipeline]) -> None:
    """Gives all that a tenant runs its share together; what has stopped or failed needs none."""
    tenants: dict[str, list[RunningPipeline]] = {}
    for running in pipelines:
        if running.stages:
            tenants.setdefault(running.pipeline.tenant.name, []).append(running)
    for theirs in tenants.values():
        for running in theirs:
            running.share_with(len(theirs))
