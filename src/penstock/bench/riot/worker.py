"""One side of `bench riot` in a process of its own; asked one thing at a time, it answers in JSON."""

from __future__ import annotations

import argparse
import gc
import sqlite3
import time
from collections import deque
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from penstock.bench.riot.drip import Drip
from penstock.bench.riot.memory import memory_mb
from penstock.bench.riot.predict import path_shares
from penstock.bench.riot.replay import as_numbers, backlogs, figures_of
from penstock.bench.riot.side import ROOMY, SETTINGS, SLOTS, Declare, Ours, Plain, Side
from penstock.bench.riot.sink_meter import SinkMeter
from penstock.bench.workers import serve
from penstock.errors import PenstockError
from penstock.measure.congestion import congestion_of
from penstock.pipeline import sinks
from penstock.pipeline.endpoints import SourceSpec
from penstock.pipeline.pipeline import Pipeline
from penstock.spark import granted_frames, held
from penstock.spark.feeders import wait_for
from penstock.spark.jvm import jvm
from penstock.spark.mqtt_publisher import Publisher
from penstock.workloads.riot.topologies import PAPER_INSTANCES, topology

GIVE_UP_SECONDS = 8.0
"""A step ends early where its rows are so old: nothing more is to be learned from it."""
LOOK_SECONDS = 0.5
IDLE_LOOKS = 6
POLLING_MS = 50
KEEPALIVE_SECONDS = 60_000
LAST_TURNS_SECONDS, LAST_TURNS_SHARE = 1.5, 0.15
# STATS publishes 10 rows for a line while its series are young, as a trend needs eleven values.
YOUNG_SINK_ROWS: Mapping[str, float] = {"stats": 10.0}
YOUNG_LOOPS = 11


class Worker:
    """A side with its source and its sink."""

    def __init__(self, asked: argparse.Namespace):
        self._asked = asked
        if asked.as_jobs:
            granted_frames.ROWS_WITHOUT_A_JOB = -1
            held.WITHOUT_A_JOB = held.PLANNED_ONCE = False
        self._topology = topology(asked.topology)
        self._meter = SinkMeter(_publisher(asked).publish, keep=not asked.lean)
        self._side = self._start(asked)
        trace = self._topology.trace()
        self._young_rows = YOUNG_LOOPS * trace.num_rows
        self._drip = Drip(trace, self._side.put, keep=not asked.lean)
        self._drip.start()
        self._rows_before = 0
        """That were fed to another pipeline, before this one began."""
        self._since = 0.0
        """When nothing waited, and ticks and turns were forgotten."""

    def _declare(self, *, fused: bool) -> Declare:
        def declare(source: SourceSpec) -> Pipeline:
            variant = "fused" if fused else "unfused"
            table = sinks.Table(self._asked.folder / f"{self._asked.side}-{variant}.db", "readings")
            # It publishes to a broker: cut off from stages with state, as every sink that may be away.
            sink = sinks.Callback(self._meter.take, may_be_away=True)
            instances = PAPER_INSTANCES[self._topology.name] if self._asked.instances == "paper" else None
            return self._topology.declare(source, publish=sink, table=table, fused=fused, instances=instances)

        return declare

    def _start(self, asked: argparse.Namespace) -> Side:
        folder = asked.folder / asked.side
        folder.mkdir()
        declare, schema = self._declare(fused=False), self._topology.schema
        if asked.side == "ours":
            settings = SETTINGS if asked.lean else ROOMY
            return Ours(declare, schema, folder, asked.policy, settings=settings, keep=not asked.lean)
        return Plain(declare, schema, folder, asked.polling)

    def answer(self, request: Mapping[str, Any]) -> Any:
        kind = request["do"]
        return getattr(self, kind)(**{key: value for key, value in request.items() if key != "do"})

    def warm(self, rate: float, seconds: float) -> bool:
        """Runs at a rate, however late its rows are, so that code is compiled."""
        self._drip.rate = rate
        self._sleep(seconds, patient=True)
        return True

    def step(self, rate: float, settle: float, seconds: float, patient: bool = False) -> dict[str, Any]:
        """Runs at a rate, and measures after `settle` seconds; rows still waiting are left waiting.

        Unless it is `patient`, a step whose rows are very old ends early.
        """
        self._drip.rate = rate
        self._sleep(settle, patient=patient)
        begin, scheduled = time.time(), self._side.scheduler_seconds
        self._sleep(seconds, patient=patient)
        end = time.time()
        spent, worked = (
            now - before for now, before in zip(self._side.scheduler_seconds, scheduled, strict=True)
        )
        # A turn is told when it ends: rows of those that run now would seem to wait.
        time.sleep(min(LAST_TURNS_SECONDS, seconds * LAST_TURNS_SHARE))
        latency = self._meter.between(begin, end)
        due = self._due(begin, end)
        happened = self._drip.ticks, [turn for turn in self._side.turns() if turn.granted_at >= self._since]
        figures = figures_of(self._side.graph, *happened, begin, end)
        congestion = congestion_of(figures, SLOTS, self._first)
        stages = as_numbers(figures, backlogs(self._side.graph, *happened, begin, end))
        for name, share in path_shares(self._side.graph, stages).items():
            stages[name]["path_share"] = share
        return {
            "rate": rate,
            "mean": latency.mean,
            "p99": latency.p99,
            "early_mean": latency.early_mean,
            "late_mean": latency.late_mean,
            "seconds": end - begin,
            "published_share": latency.rows / due if due else 0.0,
            "published_per_second": latency.rows / (end - begin),
            "stages": stages,
            "scheduler_seconds": spent,
            "scheduler_cpu_seconds": worked,
            "turn_seconds": sum(each["slot_seconds"] for each in stages.values()),
            "utilisation_cv": congestion.utilisation_cv,
            "weight_cv": congestion.weight_cv,
            "predicted_rate": congestion.highest_rows_per_second,
        }

    def _due(self, begin: float, end: float) -> float:
        """Rows that must be published for what came in this time."""
        young = self._drip.rows - self._rows_before < self._young_rows
        ratio = YOUNG_SINK_ROWS.get(self._topology.name) if young else None
        came = sum(rows for at, rows in self._drip.ticks if begin <= at < end)
        return came * (ratio or self._topology.sink_rows)

    @property
    def _first(self) -> list[str]:
        queues = self._side.graph.queues.values()
        return [name for queue in queues if queue.source is not None for name in queue.consumers]

    def _sleep(self, seconds: float, *, patient: bool = False) -> None:
        begun = time.time()
        while (left := begun + seconds - time.time()) > 0:
            time.sleep(min(left, LOOK_SECONDS))
            if self._side.error:
                raise PenstockError(f"the side must run on, but: {self._side.error}")
            now = time.time()
            if not patient and self._meter.between(now - 1.5, now).mean > GIVE_UP_SECONDS:
                return

    def drain(self, limit: float) -> dict[str, Any]:
        """Feeds nothing until everything is out, or the limit is reached."""
        self._drip.rate = 0.0
        begun = time.time()
        seen = deque([-1] * IDLE_LOOKS, maxlen=IDLE_LOOKS)

        def quiet() -> bool:
            # Between two of its batches a query seems idle for a moment.
            seen.append(self._meter.rows if self._side.idle else -1)
            return min(seen) >= 0 and len(set(seen)) == 1

        done = wait_for(quiet, limit, 0.1)
        if done:
            self._side.tidy()
            self._drip.ticks.clear()
            self._since = time.time()
        counts = {"fed": self._drip.rows, "out": self._meter.rows, "stored": self._stored()}
        return {"done": done, "seconds": time.time() - begun, **counts}

    def _stored(self) -> list[int] | None:
        """Rows in the table, and how many different readings they are; None where nothing is stored."""
        path = self._asked.folder / f"{self._asked.side}-unfused.db"
        if not path.exists():
            return None
        with closing(sqlite3.connect(path)) as stored:
            found = stored.execute("SELECT count(*), count(DISTINCT msgid) FROM readings").fetchone()
        return list(found)

    def _waiting(self) -> int:
        if isinstance(self._side, Ours):
            return sum(each.figures.rows_waiting for each in self._side.engine.stages())
        return 0

    def reschedule(self, policy: str, consumption: str) -> bool:
        assert isinstance(self._side, Ours)
        self._side.engine.reschedule(policy=policy, consumption=consumption)
        return True

    def fuse(self) -> bool:
        """Goes on with the fused pipeline; call it drained."""
        assert isinstance(self._side, Ours)
        self._rows_before = self._drip.rows
        self._side.change(self._declare(fused=True))
        return True

    def set_rate(self, rate: float) -> bool:
        self._drip.rate = rate
        return True

    def memory(self, collected: bool = True) -> dict[str, float]:
        """Memory of this process and of Spark's, in MB, if `collected` after a collection of both.

        Arrow's allocator keeps what was freed for a while: it gives that back.
        """
        if collected:
            gc.collect()
            pa.default_memory_pool().release_unused()
            jvm(self._side.session).java.lang.System.gc()
        own = psutil.Process()
        return {
            "driver_mb": memory_mb(own),
            "spark_mb": memory_mb(*own.children(recursive=True)),
            "waiting": float(self._waiting()),
            "spool_mb": spool_bytes(self._asked.folder) / 1e6,
        }


def spool_bytes(folder: Path) -> int:
    """Of the segments of all queues; one may go while they are looked at."""
    total = 0
    for path in folder.glob("**/data/*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def _publisher(asked: argparse.Namespace) -> Publisher:
    """Connected. A side that is stopped by a signal answers nothing for minutes: the broker must not mind."""
    spec = sinks.Mqtt("127.0.0.1", asked.port, f"riot/{asked.topology}", keepalive_seconds=KEEPALIVE_SECONDS)
    return Publisher(spec, f"riot-{asked.side}").__enter__()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--side", choices=("ours", "plain"), required=True)
    parser.add_argument("--topology", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--policy", default="longest-queue")
    parser.add_argument("--as-jobs", action="store_true", help="ours: also small turns are Spark jobs")
    parser.add_argument("--instances", choices=("one", "paper"), default="one", help="of each operator")
    parser.add_argument("--lean", action="store_true", help="ours: keeps nothing, with the heap users have")
    parser.add_argument("--polling", type=int, default=POLLING_MS, help="ms between looks of an idle query")
    worker = Worker(parser.parse_args())
    serve(True, worker.answer)


if __name__ == "__main__":
    main()
