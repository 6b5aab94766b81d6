"""One hop: a segment appended to a spool, through a stage without state, published in the next spool."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.bench.workers import serve
from penstock.errors import PenstockError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.queues.spool import Spool

SLOTS = 2
ROWS = 1000
SCHEMA = "id BIGINT, v DOUBLE, name STRING"
PATIENCE_SECONDS = 60.0
# Between two hops: the turn before is then wholly over, its rows released and its books closed.
PAUSE_SECONDS = 0.01


def segment_table() -> pa.Table:
    """A thousand rows of a number, a measurement and a name."""
    import pyarrow as pa

    names = [f"sensor-{number % 50}" for number in range(ROWS)]
    return pa.table({"id": list(range(ROWS)), "v": [number * 0.5 for number in range(ROWS)], "name": names})


class Hops:
    """Appends a segment, and waits until its result is published."""

    def __init__(self, source: Spool, result: Spool):
        self._source = source
        self._result = result
        self._table = segment_table()
        self._published = threading.Condition()
        self._seen = result.rows
        self._at = 0.0
        result.add_listener(self._look)

    def _look(self) -> None:
        now = time.perf_counter()
        with self._published:
            if self._result.rows > self._seen:
                self._seen, self._at = self._result.rows, now
                self._published.notify_all()

    def one(self) -> float:
        """The seconds of one hop, the writing of the segment included."""
        with self._published:
            before = self._seen
        begun = time.perf_counter()
        self._source.append(self._table)
        with self._published:
            if not self._published.wait_for(lambda: self._seen > before, PATIENCE_SECONDS):
                raise PenstockError(f"a hop must end within {PATIENCE_SECONDS:g} s, but did not")
            return self._at - begun

    def run(self, hops: int) -> list[float]:
        times = []
        for _ in range(hops):
            times.append(self.one())
            time.sleep(PAUSE_SECONDS)
        return times


def start(folder: Path) -> Hops:
    """A pipeline of one stage, a filter and a projection, between two spools."""
    from penstock import Engine, Pipeline, Spool, sinks, sources

    source, result = Spool(folder / "hop-in"), Spool(folder / "hop-out")
    pipeline = Pipeline("hop")
    rows = pipeline.source("rows", sources.FromSpool(source, SCHEMA))
    kept = rows.operator("keep", lambda frame: frame.filter("id % 2 = 0"))
    twice = kept.operator("twice", lambda frame: frame.selectExpr("id", "v * 2 AS w", "name"))
    twice.sink("result", sinks.ToSpool(result), latency="1s")
    Engine(state=folder / "hop-state", slots=SLOTS).submit(pipeline)
    return Hops(source, result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    hops = start(parser.parse_args().folder)

    def answer(asked: Mapping[str, Any]) -> list[float]:
        return hops.run(asked["hops"])

    serve("ready", answer)


if __name__ == "__main__":
    main()
