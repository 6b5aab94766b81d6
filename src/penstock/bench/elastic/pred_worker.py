"""PRED on a cluster, in the driver's process: under Penstock, or as one query for each operator."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.bench.elastic.cluster_session import await_executors, session_on
from penstock.bench.riot.drip import Drip
from penstock.bench.riot.side import Ours, Plain, Side, plain_settings
from penstock.bench.riot.sink_meter import SinkMeter
from penstock.bench.workers import ending_at_once, serve
from penstock.errors import PenstockError
from penstock.operators.emulate import service
from penstock.operators.transform import in_turn
from penstock.pipeline import sinks
from penstock.pipeline.endpoints import SourceSpec
from penstock.pipeline.nodes import Operator
from penstock.pipeline.pipeline import Pipeline
from penstock.spark.cluster.standalone import StandaloneCluster
from penstock.spark.feeders import wait_for
from penstock.workloads.riot.topologies import topology

SERVICE_SECONDS = {
    "senml_parse": 0.004,
    "decision_tree": 0.002,
    "linear_regression": 0.002,
    "block_average": 0.002,
    "error_estimate": 0.002,
    "publish": 0.001,
}
"""Of a row, in a task that waits."""
CLUSTER = "cluster"
"""The folder of the cluster, beside the driver's."""
POLICY, POLLING_MS = "longest-queue", 50
GIVE_UP_SECONDS, LOOK_SECONDS = 8.0, 0.5


def emulated_pred(source: SourceSpec, publish: sinks.Callback, instances: Mapping[str, int]) -> Pipeline:
    """PRED, whose rows wait in every operator beside what it does."""
    pipeline = topology("pred").declare(source, publish=publish, instances=instances)
    for name, node in tuple(pipeline.nodes.items()):
        if isinstance(node, Operator):
            waits = service(SERVICE_SECONDS[name])
            pipeline.exchange(replace(node, function=in_turn(node.function, waits)))
    return pipeline


class Worker:
    """A side with its source and its sink."""

    def __init__(self, asked: argparse.Namespace):
        self._pred = topology("pred")
        self._meter = SinkMeter(lambda payloads: None)
        cluster = StandaloneCluster(asked.folder.parent / CLUSTER)
        more = plain_settings(POLLING_MS) if asked.side == "plain" else {}
        session = session_on(cluster.url, asked.folder / "state", more)
        await_executors(session, asked.nodes)
        self._side = self._start(asked, session)
        self._drip = Drip(self._pred.trace(), self._side.put)
        self._drip.start()

    def _start(self, asked: argparse.Namespace, session: Any) -> Side:
        def declare(source: SourceSpec) -> Pipeline:
            instances = instances_on(self._pred.instances, asked.nodes)
            return emulated_pred(source, sinks.Callback(self._meter.take), instances)

        if asked.side == "pool":
            return Ours(declare, self._pred.schema, asked.folder, POLICY, session, asked.nodes)
        return Plain(declare, self._pred.schema, asked.folder, POLLING_MS, session, parallel=True)

    def answer(self, request: Mapping[str, Any]) -> Any:
        return getattr(self, request["do"])(**{key: value for key, value in request.items() if key != "do"})

    def step(self, rate: float, settle: float, seconds: float) -> dict[str, Any]:
        """Runs at a rate, and measures after `settle` seconds."""
        self._drip.rate = rate
        self._sleep(settle)
        begin = time.time()
        self._sleep(seconds)
        end = time.time()
        latency = self._meter.between(begin, end)
        due = sum(rows for at, rows in self._drip.ticks if begin <= at < end) * self._pred.sink_rows
        return {
            "rate": rate,
            "mean": latency.mean,
            "p99": latency.p99,
            "early_mean": latency.early_mean,
            "late_mean": latency.late_mean,
            "seconds": end - begin,
            "published_share": latency.rows / due if due else 0.0,
            "published_per_second": latency.rows / (end - begin),
        }

    def drain(self, limit: float) -> bool:
        """Feeds nothing until everything is out, or the limit is reached."""
        self._drip.rate = 0.0
        done = wait_for(lambda: self._side.idle, limit, LOOK_SECONDS)
        if done:
            self._side.tidy()
        return done

    def _sleep(self, seconds: float) -> None:
        begun = time.time()
        while (left := begun + seconds - time.time()) > 0:
            time.sleep(min(left, LOOK_SECONDS))
            if self._side.error:
                raise PenstockError(f"the side must run on, but: {self._side.error}")
            now = time.time()
            if self._meter.between(now - 1.5, now).mean > GIVE_UP_SECONDS:
                return


def instances_on(instances: Mapping[str, int], nodes: int) -> dict[str, int]:
    """Tasks of operators on both sides: the paper's, as far as there are slots for them."""
    return {name: min(count, nodes) for name, count in instances.items()} if nodes > 1 else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--side", choices=("pool", "plain"), required=True)
    parser.add_argument("--nodes", type=int, required=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    with ending_at_once():
        serve(True, Worker(parser.parse_args()).answer)


if __name__ == "__main__":
    main()
