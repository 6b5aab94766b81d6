"""What watching costs: processor time of the watch and its server, with a viewer of 20 stages and without."""

from __future__ import annotations

import json
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.bench.result import BenchResult, BenchSettings, at_most
from penstock.bench.stats import single, summary
from penstock.bench.workers import Worker

STAGES = 20
SECONDS, QUICK_SECONDS = 60.0, 15.0
WARM_SECONDS, QUICK_WARM_SECONDS = 30.0, 10.0


def run(settings: BenchSettings) -> BenchResult:
    result = BenchResult("watch")
    seconds = QUICK_SECONDS if settings.quick else SECONDS
    warm = QUICK_WARM_SECONDS if settings.quick else WARM_SECONDS
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        Worker("penstock.bench.watch_worker", Path(folder), "--stages", str(STAGES)) as worker,
    ):
        settings.say(f"starting an engine with {STAGES} stages")
        address = worker.ready()["url"]
        settings.say(f"{warm:g} s to warm up, then {seconds:g} s without a viewer")
        worker.ask(seconds=warm)
        alone = worker.ask(seconds=seconds)
        settings.say(f"{seconds:g} s with one viewer")
        with viewer(address) as frames:
            worker.ask(seconds=2.0)
            del frames[:]
            seen = worker.ask(seconds=seconds)
            sizes = list(map(float, frames))
    result.put("watch_cores", single(seen["cores"]), at_most(0.01))
    result.put("unwatched_cores", single(alone["cores"]), at_most(0.01))
    result.put("frame_bytes", summary(sizes))
    result.setup["watch"] = {
        "stages": STAGES,
        "seconds": seconds,
        "frames": len(sizes),
        "turns_per_second": seen["turns"] / seconds,
        "counted_cores": seen["counted"],
        "note": "processor time of the threads that look, serve and send; the browser's is its own",
    }
    return result


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
