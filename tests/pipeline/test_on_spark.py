from __future__ import annotations

import pytest
from tests.pipeline.fakes import FakeSource

from penstock.pipeline import Pipeline

pytestmark = pytest.mark.spark
SCHEMA = "reading STRING NOT NULL, value DOUBLE, box STRUCT<x: INT, y: INT>"


@pytest.fixture
def readings():
    return Pipeline("p").source("readings", FakeSource())


def function_of(stream):
    return stream.pipeline.nodes[stream.name].function


def parsed(spark, stream, texts):
    result = function_of(stream)(spark.createDataFrame([(text,) for text in texts], "value STRING"))
    return result, result.collect()


def test_json_rows_that_fit_become_columns(spark, readings):
    text = '{"value": 1.5, "box": {"x": 1}, "reading": "a", "more": []}'
    result, [row] = parsed(spark, readings.parse("parse", SCHEMA), [text])
    assert result.columns == ["reading", "value", "box", "dead_letter", "raw"]
    assert (row.reading, row.value, tuple(row.box), row.dead_letter, row.raw) == (
        "a",
        1.5,
        (1, None),
        None,
        text,
    )


def test_json_rows_that_do_not_fit_say_why(spark, readings):
    unreadable = f"not JSON: expected {SCHEMA}"
    reasons = {
        "nope": unreadable,
        "": unreadable,
        "  ": unreadable,
        '{"reading": "a", "value": 1': unreadable,
        '[{"reading": "a", "value": 1}]': unreadable,
        "null": unreadable,
        "5": unreadable,
        '{"reading": "a"} and more': unreadable,
        '{"reading": "a"}{"reading": "b"}': unreadable,
        '{"reading": "a"}} {"reading": "b"}': unreadable,
        None: "no text: column value is null",
        '{"value": 2}': "field reading is missing: it is NOT NULL",
        '{"reading": null}': "field reading is missing: it is NOT NULL",
        '{"reading": "a", "value": "x"}': "field value must be DOUBLE, got x",
        '{"reading": "a", "box": [1]}': "field box must be STRUCT<X:INT,Y:INT>, got [1]",
        '{"reading": "a", "box": {"x": "bad"}}': (
            f"a value inside a field has the wrong type: expected {SCHEMA}"
        ),
        '{"reading": "a"}': None,
    }
    _, rows = parsed(spark, readings.parse("parse", SCHEMA), list(reasons))
    assert {row.raw: row.dead_letter for row in rows} == reasons


def test_csv_rows_that_do_not_fit_say_why(spark, readings):
    schema = "reading STRING NOT NULL, value DOUBLE"
    unreadable = f"not CSV: expected {schema}"
    reasons = {
        "a,1.5": None,
        '"a,b",': None,
        "a,x": "field value must be DOUBLE, got x",
        "a": unreadable,
        "a,1,2": unreadable,
        "": unreadable,
        '"a,1': unreadable,
        ",2": "field reading is missing: it is NOT NULL",
        None: "no text: column value is null",
    }
    result, rows = parsed(spark, readings.parse("parse", schema, format="csv"), list(reasons))
    assert result.columns == ["reading", "value", "dead_letter", "raw"]
    assert {row.raw: row.dead_letter for row in rows} == reasons
    assert (rows[1].reading, rows[1].value) == ("a,b", None)


def test_a_window_gives_its_bounds_its_keys_and_its_aggregates(spark, readings):
    from pyspark.sql import functions as F

    stream = readings.window(
        "w", on="ts", size="2s", slide="1s", by="sensor", aggregate=["count(*) as n", F.max("v").alias("top")]
    )
    rows = spark.sql("SELECT timestamp_millis(10500) AS ts, 'a' AS sensor, v FROM VALUES (1), (3) AS t(v)")
    result = function_of(stream)(rows)
    assert result.columns == ["window", "sensor", "n", "top"]
    seconds = result.selectExpr(
        "unix_millis(window.start) s", "unix_millis(window.end) e", "sensor", "n", "top"
    )
    assert sorted(map(tuple, seconds.collect())) == [(9000, 11000, "a", 2, 3), (10000, 12000, "a", 2, 3)]


def test_a_window_over_a_stream_keeps_the_watermark_it_was_given(spark, readings):
    stream = readings.window("w", on="timestamp", size="1s", late="250ms", aggregate="count(*) as n")
    result = function_of(stream)(spark.readStream.format("rate").load())
    plan = result._jdf.queryExecution().analyzed().toString()
    assert result.isStreaming
    assert "EventTimeWatermark" in plan
    assert "0.25 seconds" in plan
