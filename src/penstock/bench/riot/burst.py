"""Twice the rate that a topology holds, for minutes: memory stays flat, and at last every row comes out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from penstock.bench.riot.compare import MODULE, OWN_POLICY
from penstock.bench.riot.memory import memory_mb
from penstock.bench.workers import Worker
from penstock.spark.feeders import wait_for

DRAIN_SECONDS = 1800.0
WARM_SECONDS, MOST_SETTLE_SECONDS = 120.0, 300.0
REHEARSAL_SECONDS = 60.0
SETTLED_SECONDS = 2.0
"""Rows of so many seconds may wait when the burst begins."""
LOOK_SECONDS = 15.0
PEAK_SECONDS = 1.0
BASE_SAMPLES = 3
FLAT_MB = 30.0
"""Memory is flat, and the burst may begin, when so many samples lie within so much."""
SUBSCRIBER_SECONDS = 10.0


@dataclass(frozen=True)
class Burst:
    """What a burst showed. Memory is that of the driver and of Spark together, in MB, by time."""

    rate: float
    seconds: float
    base_mb: tuple[float, ...]
    """After a collection, at the rate held, before the burst."""
    memory_mb: tuple[tuple[float, float], ...]
    """After a collection, during the burst."""
    peak_mb: float
    """The most there was at any time, as it was."""
    most_waiting: int
    spool_mb: float
    fed: int
    out: int
    expected: int
    received: int
    stored: tuple[int, int]
    """Rows in the table, and how many different readings they are."""
    drain_seconds: float

    @property
    def growth_mb(self) -> float:
        """From the time at the rate held to the last quarter of the burst: the medians."""
        quarter = max(len(self.memory_mb) // 4, 1)
        return median(memory for _, memory in self.memory_mb[-quarter:]) - median(self.base_mb)

    @property
    def lost(self) -> int:
        """Rows that are missing at one of the ends: not published, not received, or not stored."""
        published = max(self.expected - min(self.out, self.received), 0)
        return published + max(self.fed - self.stored[1], 0)

    @property
    def doubled(self) -> int:
        """Rows that were published or stored more often than they were due."""
        return max(self.out - self.expected, 0) + self.stored[0] - self.stored[1]


@dataclass(frozen=True)
class Overload:
    """A topology that is fed too fast."""

    topology: str
    held: float
    """The rate that it holds, in rows per second; the burst comes at `rate`."""
    rate: float
    seconds: float
    sink_rows: float
    """Rows at the sink for each that is fed in; exact for the topology chosen."""
    instances: str = "one"


def burst(
    overload: Overload, folder: Path, port: int, received: Callable[[], int], say: Callable[[str], None]
) -> Burst:
    """Feeds too fast, then lets everything come out. `received` tells what the subscriber has counted."""
    before = received()
    arguments = ("--side", "ours", "--topology", overload.topology, "--port", str(port))
    options = ("--policy", OWN_POLICY, "--instances", overload.instances, "--lean")
    with Worker(MODULE, folder, *arguments, *options) as worker:
        worker.ready()
        base = _base(worker, overload, say)
        worker.ask(do="set_rate", rate=overload.rate)
        seen = list(_looks(worker, overload.seconds, "burst", say))
        drained = worker.ask(do="drain", limit=DRAIN_SECONDS)
        if not drained["done"]:
            say(f"burst: not everything came out within {DRAIN_SECONDS:,.0f} s")
    expected = round(drained["fed"] * overload.sink_rows)
    # What the broker has acknowledged may still be on its way to the subscriber.
    wait_for(lambda: received() - before >= expected, SUBSCRIBER_SECONDS, 0.1)
    return Burst(
        rate=overload.rate,
        seconds=overload.seconds,
        base_mb=tuple(base),
        memory_mb=tuple((each["at"], each["memory_mb"]) for each in seen),
        peak_mb=max(each["peak_mb"] for each in seen),
        most_waiting=max(int(each["waiting"]) for each in seen),
        spool_mb=max(each["spool_mb"] for each in seen),
        fed=drained["fed"],
        out=drained["out"],
        expected=expected,
        received=received() - before,
        stored=tuple(drained["stored"]),
        drain_seconds=drained["seconds"],
    )


def _base(worker: Worker, overload: Overload, say: Callable[[str], None]) -> list[float]:
    """Runs at the rate held until code is compiled and memory is flat; its last samples.

    Nothing is collected at first: Java then fills the room for young objects, as it does in any process that
    runs for a while. A minute at the rate of the burst follows, whose rows come out before anything counts:
    code for large turns is compiled once, and what is taken after that is what the burst needs.
    """
    worker.ask(do="set_rate", rate=overload.held)
    for _ in _looks(worker, WARM_SECONDS, "before the burst, not collected", say, collected=False):
        pass
    worker.ask(do="set_rate", rate=overload.rate)
    for _ in _looks(worker, REHEARSAL_SECONDS, "rehearsal, not collected", say, collected=False):
        pass
    worker.ask(do="set_rate", rate=overload.held)
    samples: list[float] = []
    settled = False
    for look in _looks(worker, MOST_SETTLE_SECONDS, "before the burst", say):
        settled = look["waiting"] <= SETTLED_SECONDS * overload.held
        samples = [*samples, look["memory_mb"]][-BASE_SAMPLES:] if settled else []
        if len(samples) == BASE_SAMPLES and max(samples) - min(samples) <= FLAT_MB:
            break
    if not settled:
        say(f"before the burst: rows still wait after {MOST_SETTLE_SECONDS:g} s, so that it begins with them")
    return samples or [look["memory_mb"]]


def _looks(
    worker: Worker, seconds: float, what: str, say: Callable[[str], None], *, collected: bool = True
) -> Iterator[dict[str, Any]]:
    """Looks at the worker again and again; between, how much memory it has without a collection."""
    begun, peak = time.time(), 0.0
    while (passed := time.time() - begun) < seconds:
        until = time.time() + min(LOOK_SECONDS, seconds - passed)
        while (left := until - time.time()) > 0:
            time.sleep(min(PEAK_SECONDS, left))
            process = psutil.Process(worker.pid)
            peak = max(peak, memory_mb(process, *process.children(recursive=True)))
        seen = worker.ask(do="memory", collected=collected)
        memory = seen["driver_mb"] + seen["spark_mb"]
        say(
            f"{what}: {passed:.0f} s, {memory:,.0f} MB ({seen['driver_mb']:,.0f} of Python), at most "
            f"{peak:,.0f}; {seen['waiting']:,.0f} rows wait"
        )
        yield {**seen, "at": time.time() - begun, "memory_mb": memory, "peak_mb": peak}
