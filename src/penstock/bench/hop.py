"""One hop: a segment appended to a spool, through a stage, published in the next spool."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.bench.workers import serve
from penstock.errors import PenstockError
from penstock.operators.scan import Recurrence, scan
from penstock.pipeline import Stream
from penstock.spark import held

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


def _without_state(rows: Stream) -> Stream:
    kept = rows.operator("keep", lambda frame: frame.filter("id % 2 = 0"))
    return kept.operator("twice", lambda frame: frame.selectExpr("id", "v * 2 AS w", "name"))


def _with_state(rows: Stream) -> Stream:
    """The running sum of each name."""
    sums = Recurrence(
        {"total": 0.0}, lambda kept, row: {"total": kept.total + row.v}, lambda kept, row: {"w": kept.total}
    )
    return rows.operator("sum", lambda frame: scan(frame, sums, by="name", order="id"), stateful=True)


KINDS: Mapping[str, tuple[Callable[[Stream], Stream], bool]] = {
    "direct": (_without_state, True),
    "planned": (_with_state, True),
    "held": (_with_state, False),
}
"""What a stage does, and whether one with state goes on over the plan of its first batch."""


def start(folder: Path) -> dict[str, Hops]:
    """A pipeline of one stage between two spools, of each kind."""
    from penstock import Engine, Pipeline, Spool, sinks, sources

    engine, made = Engine(state=folder / "hop-state", slots=SLOTS, policy="fifo"), {}
    for kind, (stage, planned) in KINDS.items():
        source, result = Spool(folder / f"{kind}-in"), Spool(folder / f"{kind}-out")
        pipeline = Pipeline(kind)
        rows = stage(pipeline.source("rows", sources.FromSpool(source, SCHEMA)))
        rows.sink("result", sinks.ToSpool(result), latency="1s")
        held.PLANNED_ONCE = planned
        engine.submit(pipeline)
        made[kind] = Hops(source, result)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    hops = start(parser.parse_args().folder)

    def answer(asked: Mapping[str, Any]) -> list[float]:
        return hops[asked["kind"]].run(asked["hops"])

    serve("ready", answer)


if __name__ == "__main__":
    main()
