"""PRED on 1, 2, 4 and 8 nodes: a pool against one query for each operator (EdgeWise, figure 12)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.bench.elastic import plots
from penstock.bench.elastic.pred_worker import CLUSTER, POLICY, SERVICE_SECONDS, instances_on
from penstock.bench.elastic.stand import cluster_of
from penstock.bench.result import BenchResult, Plot, Table, at_least
from penstock.bench.riot.steps import Curve, Ladder, Step, climb
from penstock.bench.stats import single
from penstock.bench.workers import Worker
from penstock.errors import PenstockError
from penstock.workloads.riot.topologies import topology

NODES = (1, 2, 4, 8)
SIDES = {"pool": "Penstock", "plain": "a query for each operator"}
START_RATES = {"pool": 24.0, "plain": 6.0}
WARMUP_SECONDS, NODE_WARMUP_SECONDS = 60.0, 15.0
"""Before the first step, and more for each node: every process compiles for itself, on the same two cores."""
SETTLE_SECONDS, SECONDS, DRAIN_SECONDS = 4.0, 8.0, 40.0
DRAIN_TRIES = 4
SLOW_RATE, SLOW_SECONDS = 10.0, 20.0
"""Below that rate a step lasts longer: a handful of rows says little."""
LEAST = 1.5
MARKS = {name: at_least(LEAST) for name in (*(f"nodes_ratio_{nodes}" for nodes in NODES), "nodes_ratio")}


def pred_nodes(
    folder: Path, result: BenchResult, say: Callable[[str], None], sizes: Sequence[int] = NODES
) -> None:
    """At each size both sides search the highest rate with a mean latency under a second."""
    found = {(side, nodes): _search(folder, side, nodes, say) for nodes in sizes for side in SIDES}
    rates = {
        label: {nodes: held_rate(found[side, nodes], side) for nodes in sizes}
        for side, label in SIDES.items()
    }
    ours, plain = rates.values()
    ratios = {nodes: ours[nodes] / plain[nodes] for nodes in sizes}
    for nodes, ratio in ratios.items():
        result.put(f"nodes_ratio_{nodes}", single(ratio), MARKS[f"nodes_ratio_{nodes}"])
    result.put("nodes_ratio", single(min(ratios.values())), MARKS["nodes_ratio"])
    rows = [[str(nodes), _told(found["pool", nodes]), _told(found["plain", nodes])] for nodes in sizes]
    title = "PRED: highest rate with a mean latency under 1 s, rows/s (emulated service)"
    result.tables.append(Table(title, ["nodes", *SIDES.values()], rows))
    result.plots.append(Plot("pred", lambda figure: plots.draw_nodes(figure, rates)))
    result.setup["pred"] = {
        "service_seconds": SERVICE_SECONDS,
        "policy": POLICY,
        "rival": "one always-on streaming query for each operator on the same number of one-slot workers",
        "instances": {nodes: instances_on(topology("pred").instances, nodes) for nodes in sizes},
        "warmup_seconds": {nodes: warmup_seconds(nodes) for nodes in sizes},
        "without a job": "Penstock runs turns of stages without state that take less than a job costs in the "
        "driver, in a slot of the pool, as on any cluster; the rival's batches all go to the workers",
        "instances are": "the paper's, the same on both sides, at most as many as nodes",
        "where none was held": "the least rate that was tried counts for the rival, 0 for Penstock",
        "latency": "from a row's arrival at the source until its results are at the sink",
    }


def held_rate(curve: Curve, side: str) -> float:
    """The highest rate held; where none was, the least tried for the rival and 0 for Penstock."""
    if curve.highest is not None:
        return curve.highest.rate
    return curve.least.rate if side == "plain" else 0.0


def _told(curve: Curve) -> str:
    best = curve.highest
    return f"{best.rate:.1f} ({best.mean:.2f} s)" if best else f"none, {curve.least.rate:.1f} is too many"


def _drained(worker: Worker) -> None:
    """A step that began with rows of the one before would be judged by them."""
    if not any(worker.ask(do="drain", limit=DRAIN_SECONDS) for _ in range(DRAIN_TRIES)):
        raise PenstockError(
            f"a side must be empty before a step, but rows were left after {DRAIN_TRIES * DRAIN_SECONDS:g} "
            "s: nothing can be said of the next rate"
        )


def warmup_seconds(nodes: int) -> float:
    """Of either side."""
    return WARMUP_SECONDS + nodes * NODE_WARMUP_SECONDS


def warm_up(worker: Worker, rate: float, seconds: float) -> None:
    """A cold side may fall behind, which ends a step early: it goes on once it is empty."""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        worker.ask(do="step", rate=rate, settle=left, seconds=1.0)
        _drained(worker)


def _search(folder: Path, side: str, nodes: int, say: Callable[[str], None]) -> Curve:
    place = folder / f"pred-{side}-{nodes}"
    (place / "driver").mkdir(parents=True)
    with cluster_of(place / CLUSTER, nodes, say):
        arguments = ("--side", side, "--nodes", str(nodes))
        with Worker("penstock.bench.elastic.pred_worker", place / "driver", *arguments) as worker:
            worker.ready()
            start = START_RATES[side]
            warm_up(worker, start, warmup_seconds(nodes))

            def measure(rate: float) -> Step:
                _drained(worker)
                seconds = SLOW_SECONDS if rate < SLOW_RATE else SECONDS
                step = Step.of(worker.ask(do="step", rate=rate, settle=SETTLE_SECONDS, seconds=seconds))
                say(f"  {SIDES[side]}, {nodes} nodes, {rate:.1f} rows/s: {step.mean:.2f} s")
                return step

            return climb(Ladder(start, refinements=1, descents=2, tries=2), measure)
