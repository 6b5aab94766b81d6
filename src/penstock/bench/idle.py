"""Many pipelines with state, held and idle: what they cost in processor time and memory."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from penstock.bench.workers import serve
from penstock.errors import PenstockError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.queues.spool import Spool
    from penstock.spark.engine import Engine

SLOTS = 2
ROWS = 10
PATIENCE_SECONDS = 600.0


def segment_table(second: int) -> pa.Table:
    """A few rows of one second of event time."""
    import pyarrow as pa

    moment = datetime.fromtimestamp(second, UTC)
    stamps = pa.array([moment] * ROWS, pa.timestamp("us", "UTC"))
    return pa.table({"ts": stamps, "id": list(range(ROWS))})


class Pipelines:
    """Pipelines of one stage with state, each with a spool of its own."""

    def __init__(self, folder: Path, number: int):
        from penstock import Engine, Pipeline, Spool, sinks, sources

        self._engine: Engine = Engine(state=folder / "idle-state", slots=SLOTS)
        self._spools: list[Spool] = []
        for place in range(number):
            spool = Spool(folder / "idle-in" / str(place))
            pipeline = Pipeline(f"idle-{place}")
            rows = pipeline.source("rows", sources.FromSpool(spool, "ts TIMESTAMP, id BIGINT"))
            counts = rows.window("count", on="ts", size="1s", aggregate="count(*) AS n")
            counts.sink("counts", sinks.Callback(lambda table, batch: None), latency="2s")
            self._engine.submit(pipeline)
            self._spools.append(spool)

    def run_turns(self, number: int) -> int:
        """Gives every pipeline so many turns with rows; the turns of the one that had fewest."""
        for round_ in range(number):
            for spool in self._spools:
                spool.append(segment_table(1_000_000_000 + 10 * round_))
            self._engine.drain(PATIENCE_SECONDS)
        held = [each.figures.total_turns for each in self._engine.stages() if each.kind == "held"]
        if len(held) != len(self._spools) or min(held) < number:
            raise PenstockError(
                f"{len(self._spools)} pipelines must have had {number} held turns each, but {len(held)} are "
                f"held and one had {min(held, default=0)}: their idleness would say nothing"
            )
        return min(held)


def tree_cpu_seconds(process: psutil.Process) -> float:
    """Processor time that the process and all below it have used so far."""
    used = [each.cpu_times() for each in _tree(process)]
    return float(sum(times.user + times.system for times in used))


def tree_rss_mb(process: psutil.Process) -> float:
    """Resident memory of the process and all below it; pages they share count for each."""
    return float(sum(each.memory_info().rss for each in _tree(process)) / 2**20)


def _tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def watch(seconds: float, settle_seconds: float) -> dict[str, float]:
    """Cores used by this process tree while it idles, and the memory it holds then."""
    time.sleep(settle_seconds)
    process = psutil.Process()
    before, begun = tree_cpu_seconds(process), time.monotonic()
    time.sleep(seconds)
    cores = (tree_cpu_seconds(process) - before) / (time.monotonic() - begun)
    tree = _tree(process)
    threads = sum(each.num_threads() for each in tree)
    return {"cores": cores, "rss_mb": tree_rss_mb(process), "processes": len(tree), "threads": threads}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--pipelines", type=int, default=100)
    parser.add_argument("--turns", type=int, default=2, help="of each before it idles")
    asked = parser.parse_args()
    pipelines = Pipelines(asked.folder, asked.pipelines)

    def answer(request: Mapping[str, Any]) -> dict[str, float]:
        return watch(request["seconds"], request["settle_seconds"])

    serve({"turns": pipelines.run_turns(asked.turns)}, answer)


if __name__ == "__main__":
    main()
