"""One side of `bench batching` in a process of its own: asked to run a rate, it answers with all figures."""

from __future__ import annotations

import argparse
import math
import os
import secrets
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.bench.batching.expected import Expected, expected_of
from penstock.bench.batching.meter import Interval, ProductMeter, told
from penstock.bench.riot.plain import PlainQueries
from penstock.bench.workers import serve
from penstock.errors import PenstockError
from penstock.operators.privacy import Budget, Keys, PolicyTable
from penstock.pipeline import sinks
from penstock.pipeline.endpoints import SourceSpec
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.sources import FromSpool
from penstock.plan.workflow import RESERVE
from penstock.queues.segment import Arrivals
from penstock.queues.spool import Spool
from penstock.spark.engine import PROFILES, Engine
from penstock.spark.jvm import schema_from_ddl
from penstock.stages.fuse import cut
from penstock.workloads.wifi.associations import BEGIN, SCHEMA, TICK_SECONDS, Arrival, generate
from penstock.workloads.wifi.policies import policies_of
from penstock.workloads.wifi.products import Rules, wifi
from penstock.workloads.wifi.sharing import PRODUCTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "1"}
POLLING = "20ms"
LOOK_SECONDS = 0.5
GIVE_UP_SECONDS = 20.0


def arrivals_of(rates: Sequence[tuple[float, float]], seed: int) -> list[Arrival]:
    """Rows at each of (rate, seconds) in turn; event time goes on from part to part."""
    found: list[Arrival] = []
    begin = 0.0
    for place, (rate, seconds) in enumerate(rates):
        part = generate(rate, seconds, seed=seed + place, begin=BEGIN + timedelta(seconds=begin))
        found += [(begin + at, table) for at, table in part]
        begin += seconds
    return found


def evenly(arrivals: Sequence[Arrival], seconds: float) -> list[Arrival]:
    """The same rows, as many in every tick: a load without bursts."""
    rows = pa.concat_tables([table for _, table in arrivals])
    step = round(seconds * 1e6) // rows.num_rows
    first = round(BEGIN.timestamp() * 1e6)
    at = pa.array(range(first, first + step * rows.num_rows, step)).cast(pa.timestamp("us", "UTC"))
    even = rows.set_column(rows.column_names.index("at"), rows.schema.field("at"), at)
    each = max(round(rows.num_rows * TICK_SECONDS / seconds), 1)
    starts = range(0, rows.num_rows, each)
    # A row arrives at the end of its tick.
    return [((start + each) * step / 1e6, even.slice(start, each)) for start in starts]


class Feed(threading.Thread):
    """Hands rows over when they are due."""

    def __init__(self, arrivals: Sequence[Arrival], put: Any, base: float):
        super().__init__(name="feed", daemon=True)
        self._arrivals, self._put, self._base = arrivals, put, base
        self._stopping = threading.Event()
        self.lag_seconds = 0.0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for seconds, table in self._arrivals:
                due = self._base + seconds
                if self._stopping.wait(max(due - time.time(), 0.0)):
                    return
                self._put(table, due)
                self.lag_seconds = max(self.lag_seconds, time.time() - due)
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        self._stopping.set()
        self.join(10)


class Worker:
    """Runs the workflow at one rate after the other, each from nothing, all on one warm session."""

    def __init__(self, asked: argparse.Namespace):
        from penstock.spark.session import build_session

        own = {"spark.sql.streaming.pollingDelay": POLLING} if asked.side == "plain" else {}
        self._session: SparkSession = build_session(cores=asked.slots, settings={**SETTINGS, **own})
        self._side, self._slots, self._folder = asked.side, asked.slots, asked.folder
        self._fused = not asked.unfused
        self._policies = policies_of()
        self._table = PolicyTable(asked.folder / "policies.jsonl")
        self._table.write(self._policies)
        key = secrets.token_bytes(32)
        self._keys = Keys.from_callable(lambda: key)
        self._rules = Rules()
        self._runs = 0

    def answer(self, request: Mapping[str, Any]) -> Any:
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        folder.mkdir()
        try:
            return self._run(folder, dict(request))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, folder: Path, request: dict[str, Any]) -> dict[str, Any]:
        rates = [(rate, seconds) for rate, seconds in request["rates"]]
        arrivals = arrivals_of(rates, request.get("seed", 1))
        if request.get("even"):
            arrivals = evenly(arrivals, sum(seconds for _, seconds in rates))
        expected = expected_of(arrivals, self._policies, self._rules)
        meters = {name: ProductMeter() for name in PRODUCTS}
        runs = self._plain if self._side == "plain" else self._ours
        seconds = sum(seconds for _, seconds in rates)
        return runs(folder, request, Load(arrivals, expected, meters, request["warmup"], seconds))

    def _pipeline(self, folder: Path, source: SourceSpec, meters: Mapping[str, ProductMeter]) -> Pipeline:
        return wifi(
            source,
            policies=self._table,
            keys=self._keys,
            budget=Budget(folder / "budget.db", 1e6),
            sinks={name: sinks.Callback(meter.take) for name, meter in meters.items()},
            fused=self._fused,
            rules=self._rules,
        )

    def _ours(self, folder: Path, request: dict[str, Any], load: Load) -> dict[str, Any]:
        state = folder / "state"
        state.mkdir()
        known = self._folder / PROFILES
        if known.exists():
            shutil.copy(known, state / PROFILES)
        engine = Engine(
            self._session,
            state=state,
            slots=self._slots,
            policy=request["policy"],
            consumption=request.get("consumption"),
            planning=request.get("planning"),
            plan_reserve=request.get("plan_reserve", RESERVE),
            plan_rows=request.get("plan_rows"),
        )
        spool = Spool(folder / "input")
        try:
            running = engine.submit(self._pipeline(folder, FromSpool(spool, SCHEMA), load.meters))
            load.begin()
            feed = Feed(load.arrivals, lambda rows, due: _append(spool, rows, due), load.base)
            load.run(feed, lambda: str(running.error) if running.state == "failed" else "")
            answer = load.told(feed)
            if engine.planner is not None:
                planner = engine.planner
                answer |= {
                    "plans": planner.made,
                    "plans_measured": sum(each.at >= load.interval.begin for each in planner.changes),
                    "planning_seconds": planner.planning_seconds,
                    "batches": dict(planner.plan.rows) if planner.plan else {},
                    "reasons": [each.reason for each in planner.changes][-10:],
                }
            answer["slot_seconds"] = sum(each.slot_seconds for each in engine.tenants())
            engine.keep_profiles(self._folder)
            return answer
        finally:
            engine.stop()
            spool.close()

    def _plain(self, folder: Path, request: dict[str, Any], load: Load) -> dict[str, Any]:
        spool = Spool(folder / "unused")
        graph = cut(self._pipeline(folder, FromSpool(spool, SCHEMA), load.meters))
        queue = next(name for name, each in graph.queues.items() if each.source is not None)
        queries = PlainQueries(
            self._session, graph, {queue: schema_from_ddl(SCHEMA)}, folder, request["trigger"]
        )
        queries.start()
        try:
            load.begin()
            feed = Feed(load.arrivals, lambda rows, due: queries.folders[queue].put(rows), load.base)
            load.run(feed, lambda: queries.error)
            return load.told(feed)
        finally:
            queries.stop()
            spool.close()


class Load:
    """What is fed in one run, and what came of it."""

    def __init__(
        self,
        arrivals: list[Arrival],
        expected: Expected,
        meters: dict[str, ProductMeter],
        warmup: float,
        seconds: float,
    ):
        self.arrivals, self.expected, self.meters = arrivals, expected, meters
        self._warmup, self._seconds = warmup, seconds
        self.base = 0.0

    def begin(self) -> None:
        self.base = float(math.ceil(time.time()) + 2)

    @property
    def interval(self) -> Interval:
        return Interval(self.base + self._warmup, self.base + self._seconds)

    def run(self, feed: Feed, failed: Any) -> None:
        """Feeds it all, and returns when the time is over."""
        feed.start()
        while (left := self.interval.end - time.time()) > 0:
            time.sleep(min(left, LOOK_SECONDS))
            if error := failed():
                raise PenstockError(f"the workflow must run on, but {error}")
            if feed.error is not None:
                raise PenstockError(f"all rows must be fed, but: {feed.error}") from feed.error
        feed.stop()

    def told(self, feed: Feed) -> dict[str, Any]:
        latencies = self.expected.latencies(self.base, self.meters)
        products = {
            name: told(each, self.interval, PRODUCTS[name].latency_seconds)
            for name, each in latencies.items()
        }
        counted = [each["in_time"] for each in products.values() if each["in_time"] == each["in_time"]]
        return {
            "products": products,
            "in_time": sum(counted) / len(counted) if counted else math.nan,
            "feed_lag_seconds": feed.lag_seconds,
        }


def _append(spool: Spool, rows: Any, due: float) -> None:
    spool.append(rows, producer="campus", arrivals=Arrivals.at(due, rows.num_rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--side", choices=("ours", "plain"), required=True)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--unfused", action="store_true")
    asked = parser.parse_args()
    try:
        serve(True, Worker(asked).answer)
    except Exception:
        # At once: queries that wait in callbacks would keep the process from ending.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
