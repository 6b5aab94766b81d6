"""Small direct turns run without a job, from a plan made once: the rows are those that a job would give."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from tests.spark.conftest import eventually, jobs_so_far

from penstock import Pipeline, Spool, sinks, sources
from penstock.spark import granted_frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tests.spark.conftest import EngineFactory

SCHEMA = "id BIGINT, name STRING, ts TIMESTAMP, price DECIMAL(10, 2), tags ARRAY<STRING>, flag BOOLEAN"
Operator = Callable[["DataFrame"], "DataFrame"]


def rows(first: int, count: int) -> pa.Table:
    from decimal import Decimal

    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([None if n % 5 == 0 else f"n{n}" for n in numbers], pa.string()),
            "ts": pa.array([n * 1_000_001 for n in numbers], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(n) / 4 for n in numbers], pa.decimal128(10, 2)),
            "tags": pa.array([[f"t{n}", None] if n % 3 else [] for n in numbers], pa.list_(pa.string())),
            "flag": pa.array([n % 2 == 0 for n in numbers], pa.bool_()),
        }
    )


def run(
    engine: EngineFactory, folder: Path, operator: Operator, tables: list[pa.Table], **options: Any
) -> list[pa.Table]:
    """What comes of the tables, each in a turn of its own."""
    got: list[pa.Table] = []
    with Spool(folder / "in") as spool:
        pipeline = Pipeline("small")
        made = pipeline.source("in", sources.FromSpool(spool, SCHEMA)).operator("it", operator, **options)
        made.sink("out", sinks.Callback(lambda table, turn: got.append(table)))
        running = engine(folder / "state")
        running.submit(pipeline)
        for table in tables:
            spool.append(table)
            running.drain(30)
        running.stop()
    return got


OPERATORS: dict[str, Operator] = {
    "projection": lambda rows: rows.select("id", F.upper("name").alias("big"), "ts", "price", "tags", "flag"),
    "filter": lambda rows: rows.filter("id % 2 = 1").withColumn(
        "next", F.col("ts") + F.expr("INTERVAL 1 DAY")
    ),
    "nothing left": lambda rows: rows.filter("id < 0"),
    "explode": lambda rows: rows.select("id", F.explode("tags").alias("tag")),
    "nested": lambda rows: rows.select(F.struct("id", F.struct("price", "ts").alias("inner")).alias("both")),
    "aggregate of an array": lambda rows: rows.select(F.array_join("tags", "-").alias("joined")),
    "union with itself": lambda rows: rows.unionByName(rows.filter("flag")),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_rows_and_types_are_those_of_a_job(
    engine: EngineFactory, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [rows(0, 40), rows(40, 7)]
    small = run(engine, tmp_path / "small", OPERATORS[name], tables)
    monkeypatch.setattr(granted_frames, "ROWS_WITHOUT_A_JOB", -1)
    with_job = run(engine, tmp_path / "job", OPERATORS[name], tables)
    assert [table.schema for table in small] == [table.schema for table in with_job]
    assert [table.to_pylist() for table in small] == [table.to_pylist() for table in with_job]


def test_a_small_turn_starts_no_job(engine: EngineFactory, spark: SparkSession, tmp_path: Path) -> None:
    jobs = spark.sparkContext.statusTracker()
    before = set(jobs.getJobIdsForGroup(None))
    got = run(engine, tmp_path, OPERATORS["projection"], [rows(0, 10)])
    assert got[0].num_rows == 10
    assert set(jobs.getJobIdsForGroup(None)) - before == set()


def test_the_present_time_is_that_of_each_turn(engine: EngineFactory, tmp_path: Path) -> None:
    def stamped(rows: DataFrame) -> DataFrame:
        return rows.select("id", F.current_timestamp().alias("now"))

    begun = time.time()
    first, second = run(engine, tmp_path, stamped, [rows(0, 1), rows(1, 1)])
    moments: list[Any] = [table["now"][0].as_py().timestamp() for table in (first, second)]
    assert begun <= moments[0] < moments[1] <= time.time()


def test_a_join_with_a_table_is_planned_at_every_turn(
    engine: EngineFactory, spark: SparkSession, tmp_path: Path
) -> None:
    names = spark.createDataFrame([(1, "one"), (3, "three")], "id LONG, word STRING")
    got = run(
        engine, tmp_path, lambda rows: rows.join(names, "id").select("id", "word"), [rows(0, 2), rows(2, 4)]
    )
    found = sorted((row["id"], row["word"]) for table in got for row in table.to_pylist())
    assert found == [(1, "one"), (3, "three")]


def test_a_row_that_makes_the_operator_fail_stops_the_pipeline_with_its_name(
    engine: EngineFactory, tmp_path: Path
) -> None:
    def failing(rows: DataFrame) -> DataFrame:
        return rows.withColumn("never", F.when(F.col("id") == 3, F.raise_error(F.lit("three"))))

    from penstock.stages.build import OperatorError

    with pytest.raises(OperatorError, match=r"operator 'it' of pipeline 'small' failed.*three"):
        run(engine, tmp_path, failing, [rows(0, 10)])


def test_small_turns_free_the_memory_outside_of_the_heap(
    engine: EngineFactory, spark: SparkSession, tmp_path: Path
) -> None:
    assert spark._jvm is not None
    allocator = spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    before = allocator.getAllocatedMemory()
    got = run(engine, tmp_path, OPERATORS["projection"], [rows(first, 10) for first in range(0, 100, 10)])
    assert len(got) == 10
    assert allocator.getAllocatedMemory() == before


def test_identifiers_drawn_at_random_never_come_twice(engine: EngineFactory, tmp_path: Path) -> None:
    def named(rows: DataFrame) -> DataFrame:
        return rows.select(F.expr("uuid()").alias("name"), F.rand().alias("chance"))

    got = run(engine, tmp_path, named, [rows(0, 20), rows(20, 20)])
    found = [row for table in got for row in table.to_pylist()]
    assert len({row["name"] for row in found}) == 40
    assert len({row["chance"] for row in found}) == 40


def test_a_text_that_stands_for_a_moment_is_planned_at_every_turn(
    engine: EngineFactory, tmp_path: Path
) -> None:
    def stamped(rows: DataFrame) -> DataFrame:
        return rows.select(F.expr("CAST('now' AS TIMESTAMP)").alias("now"))

    first, second = run(engine, tmp_path, stamped, [rows(0, 1), rows(1, 1)])
    assert first["now"][0].as_py() < second["now"][0].as_py()


@pytest.mark.parametrize("count", [10, 3000])
def test_a_function_that_persists_its_rows_gets_new_ones_at_the_next_turn(
    engine: EngineFactory, tmp_path: Path, count: int
) -> None:
    seen: list[list[int]] = []

    def keep(batch: DataFrame, number: int) -> None:
        kept = batch.persist()
        seen.append(sorted(row.id for row in kept.filter("id >= 0").collect()))

    with Spool(tmp_path / "in") as spool:
        pipeline = Pipeline("small")
        made = pipeline.source("in", sources.FromSpool(spool, SCHEMA)).operator("it", lambda rows: rows)
        made.sink("out", sinks.ForeachBatch(keep))
        running = engine(tmp_path / "state")
        running.submit(pipeline)
        for first in (0, count):
            spool.append(rows(first, count))
            running.drain(30)
        running.stop()
    assert seen == [list(range(count)), list(range(count, 2 * count))]


def test_a_stage_with_several_tasks_runs_them_as_a_job(
    engine: EngineFactory, spark: SparkSession, tmp_path: Path
) -> None:
    def where(rows: DataFrame) -> DataFrame:
        return rows.select(F.spark_partition_id().alias("task"))

    got: list[pa.Table] = []
    with Spool(tmp_path / "in") as spool:
        pipeline = Pipeline("wide")
        source = pipeline.source("in", sources.FromSpool(spool, SCHEMA))
        source.operator("it", where, parallelism=2).sink("out", sinks.Callback(lambda t, _: got.append(t)))
        running = engine(tmp_path / "state")
        jobs = spark.sparkContext.statusTracker()
        before = set(jobs.getJobIdsForGroup(None))
        running.submit(pipeline)
        spool.append(rows(0, 10))
        running.drain(30)
        running.stop()
    assert got[0].num_rows == 10
    assert set(jobs.getJobIdsForGroup(None)) - before


def counted(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "10 seconds"), "flag").count()


def run_with_state(
    engine: EngineFactory, folder: Path, tables: list[pa.Table], operator: Operator = counted
) -> list[dict[str, Any]]:
    """The windows that come of the tables, each in a turn of its own."""
    got = run(engine, folder, operator, tables, stateful=True, watermark="ts")
    return [row for table in got for row in table.to_pylist()]


def test_turns_with_state_on_one_slot_start_no_job(
    engine: EngineFactory, spark: SparkSession, tmp_path: Path
) -> None:
    before = jobs_so_far(spark)
    got = run_with_state(engine, tmp_path, [rows(first, 20) for first in range(0, 100, 20)])
    assert jobs_so_far(spark) == before
    # A row a second in windows of 10 s, half of them with the flag; the last window is not over yet.
    assert [row["count"] for row in got] == [5] * 2 * 9


def test_what_is_observed_in_turns_with_state_counts_their_rows(
    engine: EngineFactory, spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql.streaming import StreamingQueryListener

    observed: list[int] = []

    class Listening(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...
        def onQueryIdle(self, event: Any) -> None: ...
        def onQueryTerminated(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None:
            observed.extend(row["rows"] for row in event.progress.observedMetrics.values())

    listening = Listening()
    spark.streams.addListener(listening)
    try:
        tables = [rows(0, 20), rows(20, 13)]
        run_with_state(
            engine,
            tmp_path,
            tables,
            lambda frame: counted(frame.observe("seen", F.count("*").alias("rows"))),
        )
        eventually(lambda: sum(observed) == 33)
    finally:
        spark.streams.removeListener(listening)
