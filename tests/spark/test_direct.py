from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, from_spool, readings, table

from penstock import Engine, Pipeline

pytestmark = pytest.mark.spark
ROWS = readings(300, seconds=30)


def plus(number: int) -> Callable[[Any], Any]:
    return lambda frame: frame.selectExpr("id", f"value + {number} as value")


def kinds(engine: Engine) -> dict[str, str]:
    return {report.stage: report.kind for report in engine.stages()}


def test_a_filter_and_a_projection_give_just_the_rows_and_columns_asked_for(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    high = stream.operator("high", lambda frame: frame.filter("value >= 50"))
    high.operator("twice", lambda frame: frame.selectExpr("id", "value * 2 as doubled")).sink(
        "out", kept.sink
    )
    runs.submit(pipeline)
    for start in range(0, 300, 100):
        source.append(table(ROWS[start : start + 100]))
    runs.drain()
    expected = [{"id": row["id"], "doubled": row["value"] * 2} for row in ROWS if row["value"] >= 50]
    assert sorted(kept.rows, key=lambda row: row["id"]) == expected
    assert kinds(runs) == {"p.twice": "direct"}


def test_hadoops_settings_are_sent_once_and_not_with_every_turn(
    engine: EngineFactory, spool: SpoolFactory, spark: SparkSession
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator("same", plus(0)).sink("out", kept.sink)
    runs.submit(pipeline)
    sent = []
    for start in range(0, 300, 100):
        source.append(table(ROWS[start : start + 100]))
        eventually(lambda count=start + 100: len(kept.rows) == count, 60)
        # Spark numbers everything that it sends, this one too.
        sent.append(spark.sparkContext.broadcast(0)._jbroadcast.id())
    assert [later - earlier for earlier, later in pairwise(sent)] == [1, 1]
    assert sorted(row["id"] for row in kept.rows) == [row["id"] for row in ROWS]


@pytest.mark.parametrize("rows", [60, 6_000], ids=["without a job", "as a job"])
def test_a_turn_over_a_small_segment_and_a_large_one_keeps_their_order(
    engine: EngineFactory, spool: SpoolFactory, rows: int
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    made = readings(rows, seconds=30)
    source.append(table(made[: rows // 6]))
    source.append(table(made[rows // 6 :]))
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator("same", plus(0)).sink("out", kept.sink)
    runs.submit(pipeline)
    runs.drain()
    assert len(kept.turns) == 1
    assert [row["id"] for row in kept.rows] == [row["id"] for row in made]


def test_two_sinks_on_one_stream_both_get_every_row(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, one, two, runs = spool(), Kept(), Kept(), engine()
    pipeline = Pipeline("p")
    twice = pipeline.source("readings", from_spool(source)).operator(
        "twice", lambda frame: frame.selectExpr("id", "value * 2 as doubled")
    )
    twice.sink("first", one.sink)
    twice.operator("even", lambda frame: frame.filter("id % 2 = 0")).sink("second", two.sink)
    source.append(table(ROWS))
    runs.submit(pipeline)
    runs.drain()
    doubled = [{"id": row["id"], "doubled": row["value"] * 2} for row in ROWS]
    assert sorted(one.rows, key=lambda row: row["id"]) == doubled
    assert sorted(two.rows, key=lambda row: row["id"]) == doubled[::2]


def test_a_union_has_the_rows_of_both_sources_by_column_name(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    left, right, kept, runs = spool("left"), spool("right"), Kept(), engine()
    pipeline = Pipeline("p")
    turned = pipeline.source("right", from_spool(right)).operator(
        "turned", lambda frame: frame.select("ts", "value", "sensor", "id")
    )
    pipeline.source("left", from_spool(left)).union("both", turned).sink("out", kept.sink)
    runs.submit(pipeline)
    left.append(table(ROWS[:120]))
    right.append(table(ROWS[120:]))
    runs.drain()
    assert sorted(kept.rows, key=lambda row: row["id"]) == ROWS


@pytest.mark.parametrize("way", ["fused", "fuse=False", "queue()"])
def test_a_chain_gives_the_same_rows_however_it_is_cut(
    engine: EngineFactory, spool: SpoolFactory, way: str
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p", fuse=way != "fuse=False")
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator("plus", lambda frame: frame.withColumn("value", frame["value"] + 1))
    stream = stream.queue() if way == "queue()" else stream
    stream = stream.operator("some", lambda frame: frame.filter("value > 20"))
    stream.operator("squared", lambda frame: frame.selectExpr("id", "value * value as v")).sink(
        "out", kept.sink
    )
    source.append(table(ROWS))
    runs.submit(pipeline)
    runs.drain()
    expected = [{"id": row["id"], "v": (row["value"] + 1) ** 2} for row in ROWS if row["value"] + 1 > 20]
    assert sorted(kept.rows, key=lambda row: row["id"]) == expected
    stages = {"fused": ["squared"], "fuse=False": ["plus", "some", "squared"], "queue()": ["plus", "squared"]}
    assert [report.stage for report in runs.stages()] == [f"p.{name}" for name in stages[way]]


def test_every_row_leaves_a_loop_once_after_as_many_rounds_as_it_needs(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    start = pipeline.source("readings", from_spool(source)).operator(
        "begin", lambda frame: frame.selectExpr("id", "value", "0 as rounds")
    )
    again = pipeline.loop("again", "id BIGINT, value DOUBLE, rounds INT")
    halved = start.union("all", again).operator(
        "halve",
        lambda frame: frame.selectExpr("id", "value / 2 as value", "cast(rounds + 1 as int) as rounds"),
    )
    halved.operator("large", lambda frame: frame.filter("value >= 1")).feed(again)
    halved.operator("small", lambda frame: frame.filter("value < 1")).sink("out", kept.sink)
    source.append(table(ROWS))
    runs.submit(pipeline)
    eventually(lambda: len(kept.rows) >= len(ROWS), 60)
    runs.drain()

    def rounds(value: float) -> int:
        return 1 if value / 2 < 1 else 1 + rounds(value / 2)

    leaving = sorted(kept.rows, key=lambda row: row["id"])
    assert [(row["id"], row["rounds"]) for row in leaving] == [
        (row["id"], rounds(row["value"])) for row in ROWS
    ]
    assert all(
        row["value"] == given["value"] / 2 ** row["rounds"] for row, given in zip(leaving, ROWS, strict=True)
    )


def test_several_pipelines_of_one_engine_read_one_spool_each_at_its_own_pace(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, runs = spool(), engine()
    sinks = {name: Kept() for name in ("one", "two", "three")}
    for number, (name, kept) in enumerate(sinks.items()):
        pipeline = Pipeline(name)
        pipeline.source("readings", from_spool(source)).operator("marked", plus(number)).sink(
            "out", kept.sink
        )
        runs.submit(pipeline)
    source.append(table(ROWS[:150]))
    source.append(table(ROWS[150:]))
    runs.drain()
    for number, kept in enumerate(sinks.values()):
        expected = [{"id": row["id"], "value": row["value"] + number} for row in ROWS]
        assert sorted(kept.rows, key=lambda row: row["id"]) == expected
    assert runs.pipelines == {"one": "running", "two": "running", "three": "running"}


def test_a_result_too_large_for_the_driver_arrives_whole(engine: EngineFactory, spool: SpoolFactory) -> None:
    """50,000 rows go by way of files that Spark's tasks write, through a queue, to the sink."""
    source, kept, runs = spool(), Kept(), engine()
    rows = readings(50_000, seconds=100)
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream.operator("same", lambda frame: frame.select("id", "value")).queue().operator(
        "sums", lambda frame: frame.selectExpr("id", "value + 1 as value")
    ).sink("out", kept.sink)
    source.append(table(rows))
    runs.submit(pipeline)
    runs.drain()
    assert len(kept.rows) == 50_000
    assert sorted((row["id"], row["value"]) for row in kept.rows) == [
        (row["id"], row["value"] + 1) for row in rows
    ]


@pytest.mark.parametrize("segments", [1, 5, 40])
def test_with_two_slots_rows_are_worked_on_in_two_tasks_however_they_came(
    engine: EngineFactory, spool: SpoolFactory, segments: int
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    tasks = pipeline.source("readings", from_spool(source)).operator(
        "tasks", lambda rows: rows.selectExpr("id", "spark_partition_id() as task"), parallelism=2
    )
    tasks.sink("out", kept.sink)
    size = 40 // segments
    for start in range(0, 40, size):
        source.append(table(ROWS[start : start + size]))
    runs.submit(pipeline)
    runs.drain()
    assert kept.column("id") == list(range(40))
    assert kept.column("task") == [0] * 20 + [1] * 20
