"""The process that is killed: one pipeline on a state directory, from wherever the last life left it.

Its lines on standard output tell how far it is: `opening`, `submitting`, `turn ROWS` (taken from the
source in this life), `drained`.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.crash_trace import LATE_SECONDS, Outcome
from penstock.pipeline import sinks, sources
from penstock.pipeline.pipeline import Pipeline
from penstock.queues.spool import Spool
from penstock.spark.engine import Engine
from penstock.stages.fuse import cut

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.measure.turns import TurnRecord

SCHEMA = "id LONG NOT NULL, sensor STRING NOT NULL, ts TIMESTAMP NOT NULL, reading INT NOT NULL"
# Less than what waits now and then, so that turns cut segments too.
CONSUMPTION = "at-most-700"
DRAIN_SECONDS = 300.0


def write_trace(folder: Path, lines: Iterable[str]) -> None:
    """Puts the trace where the pipeline's source finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"value": list(lines)}), folder / "trace.parquet")


def crash_pipeline(folder: Path, rows_per_second: float) -> Pipeline:
    """Text to rows, with dead letters; then windows and deduplication, with state, and a projection."""
    pipeline = Pipeline("crash")
    trace = sources.Replay(folder / "trace.parquet", rows_per_second, loop=False)
    parsed = pipeline.source("text", trace).parse("parse", SCHEMA)
    counted = parsed.window(
        "count",
        on="ts",
        size="1s",
        late=LATE_SECONDS,
        by="sensor",
        aggregate=("count(*) as n", "sum(reading) as total"),
    )
    counted.sink("windows", sinks.Parquet(folder / "windows"))
    parsed.operator("double", _double).sink("each", sinks.JsonLines(folder / "each"))
    once = parsed.operator("once", _once, stateful=True, watermark="ts")
    once.sink("unique", sinks.Parquet(folder / "unique"))
    return pipeline


def _double(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("id", "sensor", "2 * reading as twice")


def _once(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("ts", f"{LATE_SECONDS:g} seconds").dropDuplicates(["id", "ts"]).select("id")


def found(folder: Path) -> Outcome:
    """What lies in the sinks and among the dead letters; no engine may run."""
    each = Counter(
        (row["id"], row["sensor"], row["twice"])
        for file in sorted((folder / "each").glob("*.jsonl"))
        for row in map(json.loads, file.read_text().splitlines())
    )
    unique = Counter(row["id"] for row in _parquet_rows(folder / "unique"))
    windows: dict[tuple[datetime, str], list[tuple[int, int]]] = {}
    for row in _parquet_rows(folder / "windows"):
        start = row["window"]["start"].astimezone(UTC)
        windows.setdefault((start, row["sensor"]), []).append((row["n"], row["total"]))
    return Outcome(each, unique, _dead_letters(folder), windows)


def _parquet_rows(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.parquet")):
        if not file.name.startswith("."):
            yield from pq.ParquetFile(file).read().to_pylist()


def _dead_letters(folder: Path) -> Counter[str]:
    letters: Counter[str] = Counter()
    pipeline = crash_pipeline(folder, 1)
    for queue in cut(pipeline).queues.values():
        path = folder / "state" / pipeline.name / "queues" / queue.name.split(".", 1)[1]
        if not queue.dead_letters or not path.exists():
            continue
        with Spool(path) as spool:
            files = [spool.path / file for segment in spool.segments for file in segment.files]
            letters.update(row["raw"] for file in files for row in pq.ParquetFile(file).read().to_pylist())
    return letters


def say(words: str) -> None:
    """One line in one write: turns end in several threads."""
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main(folder: Path, rows_per_second: float) -> None:
    """Runs until the trace has been played and all of it is in the sinks, or until it is killed."""
    logging.basicConfig(level=logging.WARNING)
    taken = 0

    def tell(record: TurnRecord) -> None:
        nonlocal taken
        taken += record.rows_in if record.stage == "crash.parse" else 0
        say(f"turn {taken}")

    say("opening")
    with Engine(state=folder / "state", slots=2, consumption=CONSUMPTION) as engine:
        say("submitting")
        engine.submit(crash_pipeline(folder, rows_per_second))
        engine.on_turn(tell)
        engine.drain(DRAIN_SECONDS)
    say("drained")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
