"""Twice the rate that a topology holds, for minutes: memory stays flat, and at last every row comes out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.riot.compare import MODULE, OWN_POLICY
from penstock.bench.workers import Worker

DRAIN_SECONDS = 1800.0
WARM_SECONDS = 40.0
LOOK_SECONDS = 15.0


@dataclass(frozen=True)
class Burst:
    """What a burst showed. Memory is that of the driver and of Spark together, in MB, by time."""

    rate: float
    seconds: float
    memory_mb: tuple[tuple[float, float], ...]
    most_waiting: int
    fed: int
    out: int
    expected: int
    received: int
    drain_seconds: float

    @property
    def growth_mb(self) -> float:
        """From the first quarter of the burst to its last: the greatest of each."""
        quarter = max(len(self.memory_mb) // 4, 1)
        first = max(memory for _, memory in self.memory_mb[:quarter])
        last = max(memory for _, memory in self.memory_mb[-quarter:])
        return last - first

    @property
    def lost(self) -> int:
        """Rows that were due at the sink and were not published, or were not received by the subscriber."""
        return max(self.expected - min(self.out, self.received), 0)

    @property
    def doubled(self) -> int:
        """Rows that were published more often than they were due."""
        return max(self.out - self.expected, 0)


@dataclass(frozen=True)
class Overload:
    """A topology that is fed too fast."""

    topology: str
    rate: float
    seconds: float
    sink_rows: float
    """Rows at the sink for each that is fed in; exact for the topology chosen."""


def burst(
    overload: Overload, folder: Path, port: int, received: Callable[[], int], say: Callable[[str], None]
) -> Burst:
    """Feeds too fast, then lets everything come out. `received` tells what the subscriber has counted."""
    before = received()
    arguments = ("--side", "ours", "--topology", overload.topology, "--port", str(port))
    with Worker(MODULE, folder, *arguments, "--policy", OWN_POLICY) as worker:
        worker.ready()
        say(f"burst: {overload.topology} warming up")
        worker.ask(do="warm", rate=overload.rate / 4, seconds=WARM_SECONDS)
        memory, waiting, begun = [], 0, time.time()
        worker.ask(do="set_rate", rate=overload.rate)
        while (passed := time.time() - begun) < overload.seconds:
            time.sleep(min(LOOK_SECONDS, overload.seconds - passed))
            seen = worker.ask(do="memory")
            memory.append((time.time() - begun, seen["driver_mb"] + seen["spark_mb"]))
            waiting = max(waiting, int(seen["waiting"]))
            say(f"burst: {passed:.0f} s, {memory[-1][1]:,.0f} MB, {waiting:,} rows wait")
        drained = worker.ask(do="drain", limit=DRAIN_SECONDS)
        if not drained["done"]:
            say(f"burst: not everything came out within {DRAIN_SECONDS:,.0f} s")
    return Burst(
        rate=overload.rate,
        seconds=overload.seconds,
        memory_mb=tuple(memory),
        most_waiting=waiting,
        fed=drained["fed"],
        out=drained["out"],
        expected=round(drained["fed"] * overload.sink_rows),
        received=received() - before,
        drain_seconds=drained["seconds"],
    )
