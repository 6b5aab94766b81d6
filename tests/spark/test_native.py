"""Sources that Spark reads itself, in pipelines and in queries that were written in plain PySpark."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import (
    AGGREGATES,
    SCHEMA,
    Kept,
    Windows,
    folder_rows,
    from_spool,
    raises_when,
    readings,
    table,
    window_rows,
)

from penstock import Pipeline, sinks, sources
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = readings(120, seconds=60)


def put(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """A Parquet file that appears at once, as a file source wants it."""
    folder.mkdir(exist_ok=True)
    pq.write_table(table(rows), folder / f".{name}")
    (folder / f".{name}").rename(folder / f"{name}.parquet")


def test_windows_over_the_rate_source_hold_every_row_of_their_second(
    engine: EngineFactory, spark: SparkSession
) -> None:
    from pyspark.sql import functions as F

    kept, runs = Kept(), engine()
    rate = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    counts = rate.withWatermark("timestamp", "0 seconds").groupBy(F.window("timestamp", "1 second")).count()
    runs.start(counts, kept.sink, latency="800ms", name="counts")
    eventually(lambda: len(kept.rows) >= 4)
    runs.cancel("counts")
    rows = sorted(kept.rows, key=lambda row: row["window"]["start"])
    # The source began within a second; every later window is whole, and there is none twice and no gap.
    assert [row["count"] for row in rows[1:]] == [50] * (len(rows) - 1)
    starts = [row["window"]["start"].timestamp() for row in rows]
    assert starts == [starts[0] + number for number in range(len(rows))]


def test_a_query_that_is_stopped_at_once_leaves_nothing_running(
    engine: EngineFactory, spark: SparkSession
) -> None:
    runs = engine()
    runs.start(spark.readStream.format("rate").load(), Kept().sink, name="short")
    runs.stop()
    assert [query.name for query in spark.streams.active] == []


def test_an_engine_stops_though_its_query_was_ended_by_somebody_just_before(
    engine: EngineFactory, spark: SparkSession
) -> None:
    kept, runs = Kept(), engine()
    runs.start(spark.readStream.format("rate").option("rowsPerSecond", 20).load(), kept.sink, name="ended")
    eventually(lambda: len(kept.rows) > 0)
    [query] = spark.streams.active
    both = ThreadPoolExecutor(2)
    # It returns only when the query's callback has, which is held until the engine lets it go.
    ended = both.submit(query.stop)
    eventually(lambda: not query.isActive or ended.running())
    stopped = both.submit(runs.stop)
    both.shutdown(wait=False)
    assert (ended.result(30), stopped.result(30)) == (None, None)
    assert spark.streams.active == []


def test_rows_of_the_rate_source_arrive_once_each_with_their_latency(engine: EngineFactory) -> None:
    kept, runs = Kept(), engine()
    pipeline = Pipeline("p")
    pipeline.source("rate", sources.Rate(20)).operator("same", lambda frame: frame.select("value")).sink(
        "out", kept.sink, latency="5s"
    )
    runs.submit(pipeline)
    eventually(lambda: len(kept.rows) >= 60)
    runs.pause("p")
    eventually(lambda: runs.sinks()[0].latency.count == len(kept.rows))
    [report] = runs.sinks()
    runs.stop()
    assert kept.column("value") == list(range(len(kept.rows)))
    assert report.latency.least > 0


def test_files_that_appear_later_are_read_once_each(
    engine: EngineFactory, spark: SparkSession, tmp_path: Path
) -> None:
    kept, runs, folder = Kept(), engine(), tmp_path / "in"
    put(folder, "a", ROWS[:30])
    put(folder, "b", ROWS[30:40])
    files = spark.readStream.schema(SCHEMA).parquet(str(folder))
    runs.start(files.filter("value >= 50"), kept.sink, name="files")
    expected = [row["id"] for row in ROWS if row["value"] >= 50]
    eventually(lambda: kept.column("id") == [id for id in expected if id < 40])
    put(folder, "c", ROWS[40:80])
    eventually(lambda: kept.column("id") == [id for id in expected if id < 80])
    put(folder, "d", ROWS[80:])
    eventually(lambda: kept.column("id") == expected)
    # The sink's function sees the rows a moment before the turn is in the books.
    eventually(lambda: runs.sinks()[0].latency.count >= len(expected))
    assert runs.sinks()[0].latency.count == len(expected)


def test_files_feed_windows_in_a_pipeline_and_go_on_after_a_restart(
    engine: EngineFactory, tmp_path: Path
) -> None:
    kept, folder = Kept(), tmp_path / "in"

    def declared() -> Pipeline:
        pipeline = Pipeline("p")
        pipeline.source("files", sources.Files(folder, "parquet", SCHEMA)).window(
            "w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES
        ).sink("out", kept.sink)
        return pipeline

    first = engine()
    first.submit(declared())
    put(folder, "a", ROWS[:60])
    eventually(lambda: window_rows(kept.rows) == Windows(5).expected(ROWS[:60]))
    first.stop()
    put(folder, "b", ROWS[60:])
    second = engine()
    second.submit(declared())
    eventually(lambda: window_rows(kept.rows) == Windows(5).expected(ROWS))


def test_files_of_any_age_arrive_exactly_once_in_a_folder_over_a_restart(
    engine: EngineFactory, tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"

    def declared() -> Pipeline:
        pipeline = Pipeline("p")
        pipeline.source("files", sources.Files(folder, "json", "id LONG")).sink("out", sinks.Parquet(out))
        return pipeline

    def add(name: str, id: int, age_days: float) -> None:
        folder.mkdir(exist_ok=True)
        (folder / f".{name}").write_text(json.dumps({"id": id}))
        at = time.time() - age_days * 86_400
        os.utime(folder / f".{name}", (at, at))
        (folder / f".{name}").rename(folder / name)

    add("a", 1, age_days=0)
    first = engine()
    first.submit(declared())
    eventually(lambda: folder_rows(out) == [{"id": 1}])
    # As `cp -p` would bring it: by default Spark passes it over in silence.
    add("b", 2, age_days=100)
    eventually(lambda: folder_rows(out) == [{"id": 1}, {"id": 2}])
    first.stop()
    add("c", 3, age_days=50)
    engine().submit(declared())
    eventually(lambda: folder_rows(out) == [{"id": 1}, {"id": 2}, {"id": 3}])


def test_text_files_are_parsed_and_joined_with_a_queue(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    kept, runs, source, folder = Kept(), engine(), spool(), tmp_path / "in"
    pipeline = Pipeline("p")
    lines = pipeline.source("lines", sources.Files(folder)).parse("parse", "id BIGINT NOT NULL")
    numbers = pipeline.source("readings", from_spool(source)).operator(
        "ids", lambda frame: frame.select("id")
    )
    lines.union("all", numbers).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(table(ROWS[:10]))
    folder.mkdir(exist_ok=True)
    (folder / ".late").write_text("".join(json.dumps({"id": 500 + n}) + "\n" for n in range(5)) + "bad\n")
    (folder / ".late").rename(folder / "lines.txt")
    eventually(lambda: kept.column("id") == [*range(10), *range(500, 505)])
    assert {report.stage: report.dead_rows for report in runs.stages()}["p.parse"] == 1


def test_a_source_whose_backlog_nobody_knows_gives_every_row_once(
    engine: EngineFactory, spark: SparkSession
) -> None:
    kept, runs = Kept(), engine()
    unknown = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 10)
        .option("numPartitions", 1)
        .load()
    )
    runs.start(unknown.select("value"), kept.sink, name="unknown")
    eventually(lambda: len(kept.rows) >= 50)
    runs.cancel("unknown")
    assert kept.column("value") == list(range(len(kept.rows)))
    assert all(len(turn) == 10 for turn in kept.turns)


def test_a_python_data_source_is_adopted_beside_other_pipelines(
    engine: EngineFactory, spark: SparkSession, spool: SpoolFactory
) -> None:
    from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

    class Reader(SimpleDataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:
            return {"at": 0}

        def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int]], dict[str, int]]:
            end = min(start["at"] + 5, 20)
            return iter([(number,) for number in range(start["at"], end)]), {"at": end}

        def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[int]]:
            return iter([(number,) for number in range(start["at"], end["at"])])

    class Twenty(DataSource):
        @classmethod
        def name(cls) -> str:
            return "twenty"

        def schema(self) -> str:
            return "n INT"

        def simpleStreamReader(self, schema: Any) -> Reader:
            return Reader()

    spark.dataSource.register(Twenty)
    kept, other, source, runs = Kept(), Kept(), spool(), engine(slots=1)
    runs.start(spark.readStream.format("twenty").load(), kept.sink, name="python")
    pipeline = Pipeline("other")
    pipeline.source("readings", from_spool(source)).sink("out", other.sink)
    runs.submit(pipeline)
    source.append(table(ROWS))
    eventually(lambda: kept.column("n") == list(range(20)), 60)
    # The one slot is not taken by a query that listens.
    eventually(lambda: other.column("id") == list(range(120)))
    runs.stop()
    assert kept.column("n") == list(range(20))


def test_a_plain_foreach_batch_function_is_a_sink(
    engine: EngineFactory, spark: SparkSession, tmp_path: Path
) -> None:
    folder, out, runs = tmp_path / "in", tmp_path / "out", engine()
    put(folder, "a", ROWS[:50])

    def write(frame: Any, batch: int) -> None:
        frame.write.mode("append").parquet(str(out))

    runs.start(spark.readStream.schema(SCHEMA).parquet(str(folder)), write, name="plain")
    put(folder, "b", ROWS[50:])

    def found() -> list[int]:
        files = [file for file in out.glob("*.parquet") if not file.name.startswith(".")]
        return sorted(id for file in files for id in pq.read_table(file)["id"].to_pylist())

    eventually(lambda: out.exists() and found() == list(range(120)))
    assert [report.guarantee for report in runs.sinks()] == ["at least once"]


def test_an_update_mode_query_keeps_its_mode(
    engine: EngineFactory, spark: SparkSession, tmp_path: Path
) -> None:
    folder, kept, runs = tmp_path / "in", Kept(), engine()
    put(folder, "a", ROWS[:60])
    totals = spark.readStream.schema(SCHEMA).parquet(str(folder)).groupBy("sensor").count()
    runs.start(totals, kept.sink, name="totals", output_mode="complete")
    eventually(lambda: bool(kept.turns))
    put(folder, "b", ROWS[60:])
    expected = {sensor: sum(row["sensor"] == sensor for row in ROWS) for sensor in "abc"}
    eventually(lambda: {row["sensor"]: row["count"] for row in kept.turns[-1]} == expected)


def test_an_adopted_query_that_fails_stops_alone_and_goes_on_without_loss(
    engine: EngineFactory, spark: SparkSession, tmp_path: Path
) -> None:
    folder, flag, kept, rate, runs = tmp_path / "in", tmp_path / "flag", Kept(), Kept(), engine()
    check = raises_when(flag)
    put(folder, "a", ROWS[:40])
    files = spark.readStream.schema(SCHEMA).parquet(str(folder)).select(check("id").alias("id"))
    runs.start(files, kept.sink, name="files")
    runs.start(spark.readStream.format("rate").load(), rate.sink, name="rate")
    eventually(lambda: kept.column("id") == list(range(40)))
    flag.touch()
    put(folder, "b", ROWS[40:])
    eventually(lambda: runs.pipelines["files"] == "failed" and runs.error("files") is not None)
    assert "ValueError: the flag is up at row " in str(runs.error("files"))
    seen = len(rate.rows)
    eventually(lambda: len(rate.rows) > seen)
    assert runs.pipelines["rate"] == "running"
    flag.unlink()
    runs.resume("files")
    eventually(lambda: kept.column("id") == list(range(120)))


def test_a_static_data_frame_is_refused(engine: EngineFactory, spark: SparkSession) -> None:
    with pytest.raises(PenstockError) as caught:
        engine().start(spark.range(3), sinks.Console())
    assert str(caught.value) == (
        "a query must be a streaming DataFrame, got a static one: there is nothing to schedule; "
        "read it with spark.readStream"
    )
