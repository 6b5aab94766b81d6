"""Workers killed under load: nothing lost, nothing doubled, and how soon the backlog is as before."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from threading import Event
from typing import Any

from penstock.bench.elastic import plots
from penstock.bench.elastic.cluster_session import WORKER_MEMORY
from penstock.bench.elastic.scale import Scale
from penstock.bench.elastic.stand import Stand, lines_of
from penstock.bench.result import BenchResult, Plot, Table, at_least, at_most
from penstock.bench.stats import Summary, quantile, single
from penstock.errors import PenstockError
from penstock.spark.cluster.daemon import Daemon
from penstock.spark.cluster.standalone import StandaloneCluster, WorkerSize
from penstock.spark.feeders import wait_for

KILLS = 10
GAP_SECONDS = 20.0
LEAD_SECONDS = 8.0
"""Before the first kill: what the backlog is without one."""
BEFORE_SECONDS, CALM_SECONDS = 8.0, 4.0
"""A kill shows within the second of them, and what waits goes up and down with every turn."""
START_SECONDS = 240.0
RATE = 4.0
NODES = 5
REPLICAS = {"split": 1, "count": 2, "publish": 1}
MARKS = {
    "worker_kills": at_least(KILLS),
    "kills_lost": at_most(0),
    "kills_doubled": at_most(0),
    "recovery_s": at_most(15),
}


@dataclass
class Killer:
    """Kills one worker after the other with its executor, each at a random moment, and starts another."""

    kills: int
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    at: list[float] = field(default_factory=list)
    """When, by the clock."""

    def __call__(self, cluster: StandaloneCluster, folder: Path, stopping: Event) -> None:
        """Until all are killed, or the run is over before that."""
        samples = folder / "samples.jsonl"
        if not wait_for(lambda: stopping.is_set() or bool(lines_of(samples)), START_SECONDS):
            raise PenstockError(
                f"a run must have begun within {START_SECONDS:g} s for workers to be killed, but has not: "
                "none was"
            )
        begin = time.time() + LEAD_SECONDS
        for number in range(self.kills):
            moment = begin + number * GAP_SECONDS + self.chance.uniform(0.0, 2.0)
            if stopping.wait(max(moment - time.time(), 0.0)):
                return
            workers = [each for each in cluster.workers() if each.process is not None and each.executors]
            if not workers:
                raise PenstockError(f"there must be a worker to kill, but {len(self.at)} kills left none")
            self.at.append(time.time())
            victim = self.chance.choice(workers)
            _kill(victim)
            cluster.add(WorkerSize(memory=WORKER_MEMORY))


def _kill(worker: Daemon) -> None:
    """Both at once, as when a machine goes."""
    for pid in (worker.pid, *(each.pid for each in worker.executors)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def recoveries(waiting: Sequence[tuple[float, int]], kills: Sequence[float], until: float) -> list[float]:
    """From each kill until the backlog is as before it, and stays so; until the next kill if it never is.

    >>> calm = [(t / 2, 10) for t in range(20)]
    >>> hit = [(10 + t / 2, 50 if 2 < t < 8 else 9) for t in range(20)]
    >>> recoveries(calm + hit, [10.0], until=20.0), recoveries(calm, [5.0], until=9.5)
    ([4.0], [0.0])
    """
    took: list[float] = []
    level, recovered_at = 0, -inf
    for kill, end in zip(kills, [*kills[1:], until], strict=True):
        if recovered_at <= kill - BEFORE_SECONDS:
            # Else the last kill is in it still, and what was before that one counts.
            level = max((rows for at, rows in waiting if kill - BEFORE_SECONDS <= at < kill), default=0)
        took.append(_recovery([(at, rows) for at, rows in waiting if kill <= at < end], level, kill, end))
        recovered_at = kill + took[-1]
    return took


def _recovery(after: Sequence[tuple[float, int]], level: int, kill: float, until: float) -> float:
    for at, _ in after:
        if all(rows <= level for other, rows in after if at <= other <= at + CALM_SECONDS):
            return at - kill
    return until - kill


def worker_kills(stand: Stand, result: BenchResult, kills: int = KILLS) -> None:
    """WordCount at one rate on workers of which one has nothing to do, while they are killed."""
    warmup = stand.scale.warmup
    seconds = LEAD_SECONDS + kills * GAP_SECONDS + CALM_SECONDS
    scale = Scale(1.0, seconds, RATE, RATE, nodes=NODES, replicas=REPLICAS, peak_share=0.4, warmup=warmup)
    killer = Killer(kills)
    run = stand.run("static", scale, killer)
    waiting = run.counted.latencies.outstanding(seconds)
    moments = [at - run.began for at in killer.at]
    took = recoveries(waiting, moments, seconds)
    _tell(result, run.counted.lost, run.counted.doubled, took, kills)
    result.plots.append(Plot("kills", lambda figure: plots.draw_kills(figure, waiting, moments, took)))


def _tell(result: BenchResult, lost: int, doubled: int, took: Sequence[float], wanted: int) -> None:
    result.put("worker_kills", single(len(took)), at_least(wanted))
    result.put("kills_lost", single(lost), MARKS["kills_lost"])
    result.put("kills_doubled", single(doubled), MARKS["kills_doubled"])
    worst = max(took, default=float("nan"))
    spread = Summary(quantile(took, 0.95), min(took, default=worst), worst, len(took))
    result.put("recovery_s", spread, MARKS["recovery_s"])
    rows = [[str(number + 1), f"{seconds:.1f}"] for number, seconds in enumerate(took)]
    result.tables.append(Table("workers killed under load (emulated service)", ["kill", "recovery s"], rows))


def setup() -> Mapping[str, Any]:
    return {
        "backlog": "words that were due and had not come to the consumer, looked at ten times a second; "
        f"before a kill the most in {BEFORE_SECONDS:g} s",
        "kills": f"SIGKILL to a worker and its executor every {GAP_SECONDS:g} s, of {NODES} workers at "
        f"{RATE:g} sentences/s with {sum(REPLICAS.values())} replicas; another worker is started at once",
    }
