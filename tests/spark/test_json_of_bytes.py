"""What reads JSON from bytes gives the same rows as Spark's own from_json, whatever the text."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory

from penstock import Pipeline, sinks, sources
from penstock.spark.jvm import analysed_plan, frame_of, java_session, jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

FLAT = "ad int, kind int, revenue double"
NESTED = "a struct<b: array<int>, c: map<string, double>>, s string, d decimal(9, 2), t timestamp, f boolean"
CORRUPT = f"{FLAT}, bad string"
KEEPING = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "bad"}
TEXTS: tuple[bytes | None, ...] = (
    b'{"ad": 3, "kind": 1, "revenue": 0.25}',
    b'{"revenue": 1e3, "ad": 2147483648}',
    b'{"ad": "7", "kind": 1.5, "revenue": "NaN"}',
    b'{"ad": 1, "ad": 2}',
    b'{"ad": 1} trailing',
    b'{"ad": 1',
    b"{}",
    b"[]",
    b"[1, 2]",
    b'[{"ad": 1}, {"ad": 2}]',
    b"",
    b"   ",
    b"nul",
    b"null",
    b"17",
    b"'ad'",
    b"{'ad': 1}",
    b'{"AD": 1}',
    b'\xef\xbb\xbf{"ad": 1}',
    b'{"ad": 1, "s": "\xff"}',
    b'{"s": "\xed\xa0\x80"}',
    b'{"s": "\xc0\x80"}',
    b'{"s": "\x00"}',
    b'\x00{"ad": 1}',
    b'{\x00"\x00a\x00d\x00"\x00:\x001\x00}\x00',
    '{"s": "größer 漢字 🙂", "ad": 4}'.encode(),
    b'{"s": "\\ud83d\\ude42 \\u00e4 \\n"}',
    b'{"s": {"x":  1.50, "y": [1,  2]}}',
    b'{"s": 1.50}',
    b'{"s": null, "a": null}',
    b'{"a": {"b": [1, "x", 3], "c": {"k": 1, "l": "m"}}}',
    b'{"a": {"b": [1, 2], "c": {"k": 1.5}}, "d": 12.345, "t": "2026-01-02T03:04:05Z", "f": true}',
    b'{"d": "12.3", "t": "yesterday", "f": "yes"}',
    b'{"d": 123456789012345678901234567890}',
    None,
)


def both(spark: SparkSession, texts: Sequence[bytes | None], schema: str, options: dict[str, str]) -> None:
    from pyspark.sql import functions as F

    given_rows = spark.createDataFrame([(text,) for text in texts], "text binary")
    # Not checked for what is no UTF-8, as a file may hold.
    frame = given_rows.select(F.from_json(F.col("text").cast("string"), schema, options).alias("row"))
    expected = [_plainly(row) for row in frame.collect()]
    assert [_plainly(row) for row in of_bytes(spark, frame).collect()] == expected


def of_bytes(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The frame as it is with what Penstock puts in the place of from_json."""
    made = frame._jdf.queryExecution()
    reader = jvm(spark).penstock.JsonOfBytes
    plan = reader.within(made.sparkPlan())
    assert "from_json_bytes" in plan.toString()
    rows = plan.execute()
    return frame_of(java_session(spark).internalCreateDataFrame(rows, made.analyzed().schema(), False), spark)


def _plainly(row: Row) -> str:
    """As text, as NaN is no equal of itself."""
    return repr(row)


def mutated(count: int, seed: int) -> list[bytes]:
    """Texts that were JSON before a few of their bytes were changed, dropped or doubled."""
    chance, made = random.Random(seed), []
    known = [text for text in TEXTS if text]
    for _ in range(count):
        text = bytearray(chance.choice(known))
        for _ in range(chance.randrange(4)):
            place = chance.randrange(len(text) or 1)
            text[place : place + chance.randrange(2)] = bytes(
                chance.choice(b'{}[]:,"\\ 019eE+-.tfn\xc3\xa4\xff\x00') for _ in range(chance.randrange(3))
            )
        made.append(bytes(text))
    return made


@pytest.mark.parametrize(
    ("schema", "options"),
    [(FLAT, {}), (NESTED, {}), (CORRUPT, KEEPING), (NESTED, {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ssX"})],
)
def test_hostile_texts_give_the_rows_of_sparks_own_from_json(
    spark: SparkSession, schema: str, options: dict[str, str]
) -> None:
    both(spark, TEXTS, schema, options)


@pytest.mark.parametrize(("schema", "options"), [(NESTED, {}), (CORRUPT, KEEPING)])
def test_so_do_a_thousand_damaged_ones(spark: SparkSession, schema: str, options: dict[str, str]) -> None:
    both(spark, mutated(1000, seed=3), schema, options)


def test_a_bad_record_that_must_fail_fails_as_it_does_in_spark(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    rows = spark.createDataFrame([('{"ad": 1}',), ('{"ad": ',)], "text string")
    frame = rows.select(F.from_json("text", FLAT, {"mode": "FAILFAST"}).alias("row"))
    for made in (frame, of_bytes(spark, frame)):
        # As PySpark's own error, or as Java's where the rows were not asked of Spark.
        with pytest.raises(Exception, match="MALFORMED_RECORD_IN_PARSING"):
            made.collect()


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        (FLAT, {"allowSingleQuotes": "false"}),
        (FLAT, {"encoding": "UTF-16"}),
        (FLAT, {"mode": "DROPMALFORMED"}),
        (FLAT, {"columnNameOfCorruptRecord": "ad"}),
        ("array<int>", {}),
    ],
)
def test_what_may_be_read_by_other_rules_is_left_to_spark(
    spark: SparkSession, schema: str, options: dict[str, str]
) -> None:
    from pyspark.sql import functions as F

    frame = spark.range(1).select(F.from_json(F.lit("{}").substr(F.lit(1), F.col("id")), schema, options))
    plan = frame._jdf.queryExecution().sparkPlan()  # type: ignore[operator]
    assert jvm(spark).penstock.JsonOfBytes.within(plan).toString() == plan.toString()


def test_a_plan_that_is_kept_reads_bytes_within_a_whole_stage(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    spark.createDataFrame([('{"ad": 1}',)], "text string").write.parquet(str(tmp_path / "in"))
    rows = spark.read.parquet(str(tmp_path / "in")).select(F.from_json("text", FLAT).alias("row"))
    plan = jvm(spark).penstock.PlannedTurn.once(java_session(spark), analysed_plan(rows.select("row.ad")))
    assert "Project [from_json_bytes(text" in plan.toString()
    assert plan.toString().startswith("*(1) ")


def test_windows_over_json_count_every_good_row_and_no_bad_one(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    """Turns of a few rows and of thousands: interpreted, and compiled as whole stages."""
    chance, source, got = random.Random(5), spool(), []
    texts = [f'{{"ad": {chance.randrange(5)}, "kind": {chance.randrange(3)}}}' for _ in range(9_000)]
    texts[::100] = ["not JSON"] * 90
    pipeline = Pipeline("json")
    rows = pipeline.source("in", sources.FromSpool(source, "text STRING, at TIMESTAMP"))
    events = rows.operator(
        "parsed", lambda frame: frame.selectExpr(f"from_json(text, '{FLAT}').ad as ad", "at")
    )
    events.window("counted", on="at", size="1s", by="ad", aggregate="count(ad) as n").sink(
        "out", sinks.Callback(lambda table, batch: got.extend(table.to_pylist()))
    )
    running = engine(policy="fifo")
    running.submit(pipeline)
    for first, last in ((0, 10), (10, 20), (20, 3_000), (3_000, 6_000), (6_000, 8_900), (8_900, 9_000)):
        times = pa.array([number * 1_000 for number in range(first, last)], pa.timestamp("us", "UTC"))
        source.append(pa.table({"text": texts[first:last], "at": times}))
        running.drain(60)
    # The last second is never complete.
    expected = Counter(
        (number // 1_000, json.loads(text)["ad"])
        for number, text in enumerate(texts[:8_000])
        if text != "not JSON"
    )
    counted = {
        (int(row["window"]["start"].timestamp()), row["ad"]): row["n"] for row in got if row["ad"] is not None
    }
    assert counted == dict(expected)
