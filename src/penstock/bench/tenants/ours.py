"""Penstock's side: the tenants' pipelines under one engine, fed through spools that know sources apart."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from penstock.bench.tenants.feeder import Part
from penstock.bench.tenants.load import NOOP, Load, PolicyChoice
from penstock.bench.tenants.meter import Counts, ResultMeter, RowMeter, Turn, spread, turns_to_result
from penstock.bench.tenants.side import SETTINGS
from penstock.measure.turns import TurnRecord
from penstock.pipeline import Pipeline, Tenant, sinks
from penstock.pipeline.sources import FromSpool
from penstock.queues.segment import Arrivals
from penstock.queues.spool import Spool
from penstock.scheduling.decisions import Choice, Grant
from penstock.scheduling.laxity import turn_seconds
from penstock.scheduling.progress import IDLE_SECONDS
from penstock.spark.feeders import wait_for
from penstock.spark.running import RunningPipeline
from penstock.workloads.tenants.events import PAYLOAD_SCHEMA, SCHEMA
from penstock.workloads.tenants.groups import Job
from penstock.workloads.tenants.queries import QUERIES, pipeline_of

DECISIONS = 10_000
LAST_TURN_SECONDS = 5.0
"""How long a turn that runs at the end is waited for."""


class Ours:
    """All jobs as pipelines of one engine."""

    def __init__(self, slots: int, *, fifo: bool = False, fused: bool = True):
        from penstock.spark.session import build_session

        self._slots = slots
        self._fifo = fifo
        self._fused = fused
        self._session = build_session(cores=slots, settings=SETTINGS)

    def start(self, folder: Path, load: Load, meters: Mapping[str, ResultMeter | RowMeter]) -> None:
        from penstock.spark.engine import Engine

        self._spools: dict[str, Spool] = {}
        self._running: dict[str, RunningPipeline] = {}
        self._turns: dict[str, list[TurnRecord]] = defaultdict(list)
        policy = PolicyChoice("fifo") if self._fifo else load.policy
        self.engine = Engine(self._session, state=folder / "state", slots=self._slots, policy=policy.make())
        self.engine.on_turn(lambda record: self._turns[record.stage].append(record))
        for job in load.jobs:
            self._spools[job.name] = Spool(folder / "input" / job.name)
            self._running[job.name] = self.engine.submit(self._pipeline(job, meters[job.name]))

    def stop(self) -> None:
        self.engine.stop()

    def _pipeline(self, job: Job, meter: ResultMeter | RowMeter) -> Pipeline:
        source = spool_source(self._spools[job.name], job)
        tenant, sink = tenant_of(job), sinks.Callback(meter.take)
        if job.query == NOOP:
            pipeline = pipeline_of(tenant)
            pipeline.source("events", source).operator("noop", lambda rows: rows).sink("out", sink)
            return pipeline
        return QUERIES[job.query](
            source,
            sink,
            window=job.window_seconds,
            slides=job.slide_count,
            tenant=tenant,
            fused=self._fused,
            payload=job.payload,
        )

    def put(self, job: str, due: float, parts: Sequence[Part]) -> None:
        tables: dict[str, list[pa.Table]] = defaultdict(list)
        for source, rows in parts:
            tables[f"s{source}"].append(rows)
        self._spools[job].append_together(
            {source: pa.concat_tables(each) for source, each in tables.items()},
            arrivals=Arrivals.at(due, sum(rows.num_rows for _, rows in parts)),
        )

    def done(self, job: str, end: float) -> Counts:
        for stage in self._first_stages(job):
            granted = self.engine.decisions(stage, DECISIONS)
            last = max(
                (each.at for each in granted if isinstance(each, Grant) and each.at <= end), default=0.0
            )
            wait_for(partial(self._ended, stage, last), LAST_TURN_SECONDS)
        return spread([(each.granted_at, each.finished_at, each.rows_in) for each in self._first_turns(job)])

    def turns(self, job: str) -> list[Turn]:
        predicted = {
            (each.stage, each.at): turn_seconds(each.why.stage, each.rows)
            for each in self.engine.decisions(n=DECISIONS)
            if isinstance(each, Grant) and isinstance(each.why, Choice)
        }
        return [
            Turn(
                each.granted_at,
                each.rows_in,
                each.slots,
                each.turn_seconds,
                predicted.get((each.stage, each.granted_at), math.nan),
            )
            for each in sorted(self._first_turns(job), key=lambda each: each.granted_at)
        ]

    @property
    def cuts(self) -> tuple[int, int]:
        return self.engine.cuts.made, self.engine.cuts.overran

    def _first_turns(self, job: str) -> list[TurnRecord]:
        return [record for name in self._first_stages(job) for record in tuple(self._turns[name])]

    def _first_stages(self, job: str) -> list[str]:
        graph = self._running[job].graph
        return [name for queue in graph.queues.values() if queue.source for name in queue.consumers]

    def _ended(self, stage: str, granted_at: float) -> bool:
        """Whether the turn that was granted then has ended; so has one that was never granted."""
        return not granted_at or any(each.granted_at >= granted_at for each in tuple(self._turns[stage]))

    @property
    def error(self) -> str:
        failed = [each for each in self._running.values() if each.state == "failed"]
        return "; ".join(f"{each.name}: {each.error}" for each in failed)

    @property
    def scheduler_seconds(self) -> float:
        return self.engine.scheduler_seconds

    @property
    def turn_seconds(self) -> float:
        records = [record for turns in tuple(self._turns.values()) for record in tuple(turns)]
        return sum(record.turn_seconds * record.slots for record in records)

    def window_turns(
        self, job: str, completed: Mapping[float, float], came: Mapping[float, float]
    ) -> list[int]:
        first, *below = (
            sorted((each.granted_at, each.finished_at) for each in tuple(self._turns[stage.name]))
            for stage in self._running[job].graph.stages
        )
        return turns_to_result(completed, came, first, below[-1] if below else None)


def tenant_of(job: Job) -> Tenant:
    """The tenant of a job, under its name."""
    return Tenant(job.name, latency=job.target_seconds, share=job.share)


def spool_source(spool: Spool, job: Job) -> FromSpool:
    """The job's queue; it is known how many sources its frontier waits for, and how seldom they send."""
    idle = max(IDLE_SECONDS, 3 * job.message_seconds)
    return FromSpool(spool, PAYLOAD_SCHEMA if job.payload else SCHEMA, sources=job.sources, idle_seconds=idle)
