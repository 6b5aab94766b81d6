"""One small pipeline to break: rows from a spool, a stage without state, then windows and plain rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.spark.conftest import eventually
from tests.spark.streams import (
    AGGREGATES,
    Row,
    Windows,
    folder_rows,
    from_spool,
    json_rows,
    reading,
    readings,
    table,
    window_rows,
)

from penstock import Engine, Pipeline, Spool, sinks
from penstock.spark.running import RunningPipeline

WINDOWS = Windows(2)


def rows_to_feed(count: int = 400, seconds: float = 40) -> list[Row]:
    """Rows in order, and a last one that closes the windows of all others."""
    return [*readings(count, seconds=seconds), reading(count, seconds + 1000)]


@dataclass(frozen=True)
class Flow:
    """The pipeline `p` with its input and the folder of its sinks."""

    source: Spool
    out: Path

    def pipeline(self, version: str = "1") -> Pipeline:
        pipeline = Pipeline("p", version=version)
        first = pipeline.source("readings", from_spool(self.source)).operator(
            "first", lambda rows: rows.selectExpr("id", "sensor", "value", "ts")
        )
        counted = first.window("w", on="ts", size=float(WINDOWS.size), by="sensor", aggregate=AGGREGATES)
        counted.sink("windows", sinks.Parquet(self.out / "windows"))
        first.operator("keep", lambda rows: rows.selectExpr("id", "value")).sink(
            "each", sinks.JsonLines(self.out / "each")
        )
        return pipeline

    def feed(self, rows: Sequence[Row], size: int = 50) -> None:
        for start in range(0, len(rows), size):
            self.source.append(table(rows[start : start + size]))

    def check(self, rows: Sequence[Row]) -> None:
        """Every row once, every window right."""
        assert Counter(row["id"] for row in json_rows(self.out / "each")) == Counter(
            row["id"] for row in rows
        )
        assert window_rows(folder_rows(self.out / "windows", "sensor")) == WINDOWS.expected(rows)


def go_on(engine: Engine, running: RunningPipeline, seconds: float = 60.0) -> int:
    """Drains a pipeline, resuming it whenever it has failed; how often that was."""
    resumed = 0
    while True:
        at_rest(running, seconds)
        if running.state != "failed":
            return resumed
        resumed += 1
        assert resumed < 10, running.error
        engine.resume(running.name)


def at_rest(running: RunningPipeline, seconds: float = 60.0) -> None:
    """Returns when the pipeline has failed or has nothing left to do."""
    eventually(lambda: running.state == "failed" or running.idle, seconds)
