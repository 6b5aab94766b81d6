"""An engine whose stages are all in use, watched: the processor time of the threads that watch."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from penstock.bench.workers import serve

SLOTS = 2
ROWS_PER_SECOND = 100
TICK_SECONDS = 0.5
WATCHING = ("penstock-watch", "penstock-page", "process_request_thread")
"""Parts of the names of the threads that look, accept and serve."""


class Stand:
    """Pipelines of two stages each, fed twice a second."""

    def __init__(self, folder: Path, stages: int):
        import pyarrow as pa

        from penstock import Engine, Pipeline, sinks, sources
        from penstock.dashboard import Dashboard, Watch

        self._engine = Engine(state=folder / "watch-state", slots=SLOTS)
        trace = pa.table({"id": list(range(1000))})
        for place in range(stages // 2):
            pipeline = Pipeline(f"p{place}")
            replay = sources.Replay(trace, ROWS_PER_SECOND, stamp="seen", tick_seconds=TICK_SECONDS)
            rows = pipeline.source("rows", replay).operator("half", lambda frame: frame.where("id % 2 = 0"))
            few = rows.queue().operator("few", lambda frame: frame.where("id % 10 = 0"))
            few.sink("out", sinks.Callback(lambda table, batch: None), latency="5s")
            self._engine.submit(pipeline)
        self._watch = Watch(self._engine)
        self._page = Dashboard(self._watch, port=0)

    @property
    def url(self) -> str:
        return self._page.url

    def measure(self, seconds: float) -> dict[str, float]:
        """Cores that the watching threads used in the next `seconds`, and the turns of that time."""
        turns, counted, cores = self._turns(), self._watch.seconds, watching_seconds()
        begun = time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - begun
        return {
            "cores": (watching_seconds() - cores) / passed,
            "counted": (self._watch.seconds - counted) / passed,
            "turns": self._turns() - turns,
        }

    def _turns(self) -> int:
        return sum(each.figures.total_turns for each in self._engine.stages())


def watching_seconds() -> float:
    """Processor time so far of the threads of this process that watch; one that ends takes its time along."""
    ours = {each.native_id for each in threading.enumerate() if any(name in each.name for name in WATCHING)}
    used = psutil.Process().threads()
    return float(sum(each.user_time + each.system_time for each in used if each.id in ours))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--stages", type=int, default=20)
    asked = parser.parse_args()
    stand = Stand(asked.folder, asked.stages)

    def answer(request: Mapping[str, Any]) -> dict[str, float]:
        return stand.measure(request["seconds"])

    serve({"url": stand.url}, answer)


if __name__ == "__main__":
    main()
