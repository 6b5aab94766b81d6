"""The driver of the cluster tests: a process of its own, as only one SparkContext lives in each.

Its lines on standard output tell how far it is: `refused WHY`, `slots-K` whenever the pool has changed,
`turn ROWS`, `hangs JOB` where one of Spark's jobs has run for some seconds, `step WHAT`, `drained`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from pathlib import Path

from pyspark import SparkContext

from penstock import Engine
from penstock.bench.crash_worker import CONSUMPTION, crash_pipeline, say
from penstock.measure.turns import TurnRecord
from penstock.spark.cluster.nodes import AllocatedNodes, NodeError, Nodes, StandaloneNodes
from penstock.spark.cluster.reach import UnreachableState
from penstock.spark.cluster.standalone import StandaloneCluster
from penstock.spark.feeders import wait_for
from penstock.spark.session import build_session

LIMIT_SECONDS = 300.0
HANGS_SECONDS = 3.0
# A path that means another folder to every process: what it is to the driver, no worker reaches.
UNREACHABLE = "/proc/self/cwd/unreachable"


def main(folder: Path, rows_per_second: float, cluster: StandaloneCluster) -> None:
    """Runs the pipeline of the crash bench on a cluster to its end, or until it is killed."""
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    os.chdir(folder)
    state = folder / "state"
    session = build_session(master=cluster.url, region="default", state=state)
    go = folder / "go"
    if not go.exists():
        _try_unreachable(session)
    with Engine(session, state=state, consumption=CONSUMPTION) as engine:
        threading.Thread(target=_tell_slots, args=(engine,), daemon=True).start()
        threading.Thread(target=_tell_hanging, args=(session.sparkContext,), daemon=True).start()
        engine.on_turn(_tell_turn)
        engine.submit(crash_pipeline(folder, rows_per_second))
        if not go.exists():
            _steps(engine, go, cluster)
        engine.drain(LIMIT_SECONDS)
    say("drained")


def _try_unreachable(session: object) -> None:
    try:
        Engine(session, state=UNREACHABLE)  # type: ignore[arg-type]
    except UnreachableState as refused:
        say(f"refused {refused}")


def _tell_turn(record: TurnRecord) -> None:
    say(f"turn {record.rows_in}")


def _tell_slots(engine: Engine) -> None:
    before = -1
    while True:
        if engine.pool_slots != before:
            before = engine.pool_slots
            say(f"slots-{before}")
        time.sleep(0.02)


def _tell_hanging(context: SparkContext) -> None:
    jobs = context.statusTracker()
    since: dict[int, float] = {}
    while True:
        now = time.monotonic()
        since = {job: since.get(job, now) for job in jobs.getActiveJobsIds()}
        for job in (job for job, begun in since.items() if now - begun > HANGS_SECONDS):
            say(f"hangs {job}")
        time.sleep(0.2)


def _steps(engine: Engine, go: Path, cluster: StandaloneCluster) -> None:
    _await(go.exists, "being told to go")
    assert engine.pool is not None
    workers = StandaloneNodes(cluster, engine.pool)
    _await_slots(engine, 2)
    workers.start(1, "default", "extra")
    _await_slots(engine, 3)
    say("step grown")
    workers.hide("extra")
    _await_slots(engine, 2)
    workers.show("extra")
    _await_slots(engine, 3)
    workers.release("extra")
    say(f"step asked back: {_refusal(workers, 'extra')}")
    _await_slots(engine, 2)
    _await(lambda: "extra" not in {node.name for node in workers.nodes()}, "the node to leave")
    say("step shrunk")
    used = {use.stage for use in workers.use() if use.cpu_seconds > 0 and use.node.startswith("worker-")}
    say(f"step used by {' '.join(sorted(used))}")
    executors = AllocatedNodes(engine.pool, cores=1)
    executors.release(executors.nodes()[0].name)
    _await_slots(engine, 1)
    executors.start(1, "default")
    _await_slots(engine, 2)
    say("step allocated")


def _refusal(nodes: Nodes, name: str) -> str:
    try:
        nodes.show(name)
    except NodeError as refused:
        return str(refused)
    return "it came back"


def _await_slots(engine: Engine, slots: int) -> None:
    # Every worker has one core.
    _await(
        lambda: (engine.pool_slots, engine.pool_nodes) == (slots, slots), f"{slots} slots on as many nodes"
    )


def _await(condition: object, what: str) -> None:
    if not wait_for(condition, LIMIT_SECONDS):  # type: ignore[arg-type]
        raise TimeoutError(f"{what} did not come within {LIMIT_SECONDS:g} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), StandaloneCluster(Path(sys.argv[3])))
