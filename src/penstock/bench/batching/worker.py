"""One side of `bench batching` in a process of its own: asked to run a rate, it answers with all figures."""

from __future__ import annotations

import argparse
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.bench.batching.expected import expected_of
from penstock.bench.batching.load import Feed, Load, arrivals_of, evenly
from penstock.bench.batching.meter import ProductMeter
from penstock.bench.plain_queries import PlainQueries
from penstock.bench.workers import ending_at_once, serve
from penstock.operators.privacy import Budget, Keys, PolicyTable
from penstock.pipeline import sinks
from penstock.pipeline.endpoints import SourceSpec
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.rehearsal import let_go, let_wait
from penstock.pipeline.sources import FromSpool, Replay
from penstock.plan.workflow import RESERVE
from penstock.queues.segment import Arrivals
from penstock.queues.spool import Spool
from penstock.spark.engine import PROFILES, Engine
from penstock.spark.jvm import schema_from_ddl
from penstock.spark.sized_turns import batch_costs
from penstock.spark.trace_feed import TraceFeed
from penstock.stages.fuse import cut
from penstock.workloads.wifi.associations import SCHEMA
from penstock.workloads.wifi.policies import policies_of
from penstock.workloads.wifi.products import Rules, wifi
from penstock.workloads.wifi.sharing import PRODUCTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "1"}
POLLING = "20ms"
TRACE_ROWS = 100_000.0


class Worker:
    """Runs the workflow at one rate after the other, each from nothing, all on one warm session."""

    def __init__(self, asked: argparse.Namespace):
        from penstock.spark.session import build_session

        own = {"spark.sql.streaming.pollingDelay": POLLING} if asked.side == "plain" else {}
        self._session: SparkSession = build_session(cores=asked.cores, settings={**SETTINGS, **own})
        self._side, self._cores, self._folder = asked.side, asked.cores, asked.folder
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
            return self._sizes(folder, request) if "sizes" in request else self._run(folder, dict(request))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _sizes(self, folder: Path, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What turns of these sizes cost."""
        trace = pa.concat_tables([table for _, table in arrivals_of([(TRACE_ROWS, 1.0)], seed=1)])
        meters = {name: ProductMeter() for name in PRODUCTS}
        # Event time is the time of day, so that windows end however often the trace is played.
        pipeline = self._pipeline(folder, Replay(trace, TRACE_ROWS, stamp="at"), meters)
        let_go(pipeline)
        let_wait(pipeline)
        with (
            TraceFeed([pipeline], folder / "rows") as feed,
            Engine(
                self._session,
                state=folder / "state",
                slots=request.get("slots", self._cores),
                policy="random",
                consumption="planned",
                planning="1d",
            ) as engine,
        ):
            engine.submit(pipeline)
            found = batch_costs(engine, request["sizes"], request["seconds"], feed, lambda text: None)
        return [asdict(each) for each in found]

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
            slots=request.get("slots", self._cores),
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
                    "plans_measured": [
                        each.reason for each in planner.changes if each.at >= load.interval.begin
                    ],
                    "planning_seconds": planner.planning_seconds,
                    "batches": dict(planner.plan.rows) if planner.plan else {},
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


def _append(spool: Spool, rows: Any, due: float) -> None:
    spool.append(rows, producer="campus", arrivals=Arrivals.at(due, rows.num_rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--side", choices=("ours", "plain"), required=True)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--unfused", action="store_true")
    asked = parser.parse_args()
    with ending_at_once():
        serve(True, Worker(asked).answer)


if __name__ == "__main__":
    main()
