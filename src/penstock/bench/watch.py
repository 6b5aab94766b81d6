"""What watching costs: processor time of the watch and its server, with a viewer of 20 stages and without."""

from __future__ import annotations

import json
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from penstock.bench.result import BenchResult, BenchSettings, at_most
from penstock.bench.stats import alternating, summary
from penstock.bench.workers import Worker

STAGES = 20
SECONDS, QUICK_SECONDS = 30.0, 15.0
ROUNDS, QUICK_ROUNDS = 5, 2
WARM_SECONDS, QUICK_WARM_SECONDS = 30.0, 10.0
SCRAPE_SECONDS = 15.0
"""As often as Prometheus asks by default, or more often."""


@dataclass
class Looks:
    """Rounds with somebody who looks, and without, of an engine in another process."""

    worker: Worker
    address: str
    seconds: float
    frames: list[float] = field(default_factory=list)
    seen: list[Mapping[str, Any]] = field(default_factory=list)

    def alone(self) -> list[float]:
        """Cores that watching takes while nobody looks."""
        return [self.worker.ask(seconds=self.seconds)["cores"]]

    def watched(self) -> list[float]:
        """Cores that it takes with one viewer, and metrics asked for now and then."""
        with viewer(self.address) as frames, scraper(self.address):
            self.worker.ask(seconds=2.0)
            del frames[:]
            seen = self.worker.ask(seconds=self.seconds)
            self.frames += map(float, frames)
        self.seen.append(seen)
        return [seen["cores"]]


def run(settings: BenchSettings) -> BenchResult:
    result = BenchResult("watch")
    seconds = QUICK_SECONDS if settings.quick else SECONDS
    warm = QUICK_WARM_SECONDS if settings.quick else WARM_SECONDS
    rounds = QUICK_ROUNDS if settings.quick else ROUNDS
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        Worker("penstock.bench.watch_worker", Path(folder), "--stages", str(STAGES)) as worker,
    ):
        settings.say(f"starting an engine with {STAGES} stages")
        looks = Looks(worker, worker.ready()["url"], seconds)
        settings.say(
            f"{warm:g} s to warm up, then {rounds} rounds of {seconds:g} s with one viewer and without"
        )
        worker.ask(seconds=warm)
        found = alternating(looks.watched, looks.alone, rounds)
    result.put("watch_cores", summary(found.all_a, 0, 1), at_most(0.01))
    result.put("unwatched_cores", summary(found.all_b, 0, 1), at_most(0.01))
    result.put("frame_bytes", summary(looks.frames))
    result.setup["watch"] = {
        "stages": STAGES,
        "seconds": seconds,
        "rounds": rounds,
        "scrape_seconds": SCRAPE_SECONDS,
        "frames": len(looks.frames),
        "turns_per_second": median(each["turns"] for each in looks.seen) / seconds,
        "counted_cores": median(each["counted"] for each in looks.seen),
        "note": "processor time of the threads that look, serve and send; the browser's is its own; "
        "the range is that of the rounds",
    }
    return result


@contextmanager
def scraper(address: str, every_seconds: float = SCRAPE_SECONDS) -> Iterator[list[int]]:
    """Asks for the metrics at once and then now and then, as Prometheus does; how long the answers were.

    Over one connection: the time of a thread that ended with its connection would not be counted.
    """
    sizes: list[int] = []
    stop, where = threading.Event(), urlsplit(address)
    link = HTTPConnection(where.hostname or "", where.port, timeout=60)

    def ask() -> None:
        while not stop.is_set():
            link.request("GET", "/metrics")
            sizes.append(len(link.getresponse().read()))
            stop.wait(every_seconds)

    thread = threading.Thread(target=ask, name="scraper", daemon=True)
    thread.start()
    try:
        yield sizes
    finally:
        stop.set()
        thread.join(60)
        link.close()


@contextmanager
def viewer(address: str) -> Iterator[list[int]]:
    """A page's connection without the page: the sizes of the frames it gets, as they come."""
    sizes: list[int] = []
    stream = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        f"{address}api/events", timeout=60
    )

    def read() -> None:
        try:
            for line in stream:
                if line.startswith(b"data: "):
                    json.loads(line[6:])
                    sizes.append(len(line))
        except (OSError, ValueError, AttributeError):
            return  # it was closed under us

    threading.Thread(target=read, name="viewer", daemon=True).start()
    try:
        yield sizes
    finally:
        stream.close()
