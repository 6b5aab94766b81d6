from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.operators.riot import reference
from tests.operators.riot.inputs import (
    assert_close,
    chosen,
    frame,
    line,
    line_table,
    observed,
    readings,
    rows_of,
)

from penstock.operators import riot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
few = settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
seeds = st.integers(0, 2**32)
META = ("msgid", "time", "longitude", "latitude", "sensor")


def some_lines(seed: int, count: int = 60) -> list[str]:
    chance = random.Random(seed)
    return [
        line(f"s{chance.randrange(9)}", readings(chance), time=chance.randrange(10**13), shuffle=chance)
        for _ in range(count)
    ]


@few
@given(seeds)
def test_lines_become_observations_or_wide_rows_in_whatever_order_their_fields_stand(
    spark: SparkSession, seed: int
) -> None:
    lines = some_lines(seed)
    source = spark.createDataFrame(line_table(lines))
    wide = [reference.wide(at, text) for at, text in enumerate(lines)]
    six = [each for row in wide for each in reference.observations(row)]
    five = [each for row in wide for each in reference.observations(row, with_source=False)]
    columns, order = (*META, "name", "value", "text", "dead_letter", "raw"), ("msgid", "name")
    none = {"dead_letter": None, "raw": None}
    for made, expected in ((riot.senml_parse(), six), (riot.parse_project(), five)):
        found = rows_of(made(source), *columns, order=order)
        assert found == chosen([{**row, **none} for row in expected], *columns, order=order)
    columns = (*META, *reference.QUANTITIES, "dead_letter", "raw")
    found = rows_of(riot.senml_project()(source), *columns)
    assert found == chosen([{**row, **none} for row in wide], *columns)


@few
@given(seeds)
def test_values_out_of_range_become_null_and_the_ends_of_a_range_stay(spark: SparkSession, seed: int) -> None:
    wide = [reference.wide(at, text) for at, text in enumerate(some_lines(seed))]
    for end in range(2):
        edge = {name: reference.RANGES[name][end] for name in reference.QUANTITIES}
        wide.append({**wide[0], "msgid": len(wide), **edge})
    rows = [each for row in wide for each in reference.observations(row)]
    columns, order = ("msgid", "name", "value", "text"), ("msgid", "name")
    found = rows_of(riot.range_filter()(frame(spark, rows)), *columns, order=order)
    assert found == chosen(map(reference.in_range, rows), *columns, order=order)


def test_a_range_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^range of dust must not be empty, got 3 to 1: all would be null$"):
        riot.range_filter({"dust": (3, 1)})


def test_the_bloom_filter_forgets_or_drops_ids_that_nobody_put_in(spark: SparkSession) -> None:
    wide = [reference.wide(at, text) for at, text in enumerate(some_lines(1))]
    rows = [each for row in wide for each in reference.observations(row)]
    known = {f"s{number}" for number in range(0, 9, 2)}
    columns, order = ("msgid", "name", "text"), ("msgid", "name")
    found = rows_of(riot.bloom_filter(known, expected=1000)(frame(spark, rows)), *columns, order=order)
    expected = [{**row, "text": row["text"] if row["text"] in known else None} for row in rows]
    assert found == chosen(expected, *columns, order=order)
    dropping = riot.bloom_filter(known, "sensor", name=None, misses="drop", expected=1000)
    found = rows_of(dropping(frame(spark, rows)), "msgid", "name", order=order)
    assert found == chosen([row for row in rows if row["sensor"] in known], "msgid", "name", order=order)


def test_the_bloom_filter_can_put_misses_aside_and_leaves_what_was_put_aside_before(
    spark: SparkSession,
) -> None:
    aside = riot.bloom_filter({"a"}, "who", name=None, misses="dead_letter", expected=1000)
    rows = spark.createDataFrame([(1, "a"), (2, "b"), (3, None)], "msgid BIGINT, who STRING")
    expected = [
        (1, "a", None, None),
        (2, "b", "no who of this name is known: b", '{"msgid":2,"who":"b"}'),
        (3, None, None, None),
    ]
    assert [tuple(row) for row in aside(rows).orderBy("msgid").collect()] == expected
    before = rows.selectExpr(
        "*", "if(msgid = 2, 'bad', null) as dead_letter", "if(msgid = 2, 'raw', null) as raw"
    )
    expected[1] = (2, "b", "bad", "raw")
    assert [tuple(row) for row in aside(before).orderBy("msgid").collect()] == expected
    with pytest.raises(
        ValueError,
        match=r"^misses must be one of null, drop, dead_letter, got 'keep': rows would go nowhere$",
    ):
        riot.bloom_filter({"a"}, misses="keep")  # type: ignore[arg-type]


def test_the_bloom_filter_lets_few_strangers_through(spark: SparkSession) -> None:
    known = [f"known {number}" for number in range(2000)]
    rows = [
        {**row, "text": f"stranger {row['msgid']}", "name": "source"}
        for row in observed(random.Random(1), 2000)
    ]
    filtered = riot.bloom_filter(known, expected=2000, false_positives=0.05)(frame(spark, rows))
    assert filtered.filter("text is not null").count() < 2000 * 0.05 * 1.5


@few
@given(seeds)
def test_models_give_what_their_formulas_say_and_null_for_null(spark: SparkSession, seed: int) -> None:
    wide = [reference.wide(at, text) for at, text in enumerate(some_lines(seed))]
    wide[3]["humidity"] = wide[4]["airquality_raw"] = None
    source = spark.createDataFrame([(row["msgid"], *(row[n] for n in reference.QUANTITIES)) for row in wide])
    source = source.toDF("msgid", *reference.QUANTITIES)
    found = rows_of(riot.decision_tree()(riot.linear_regression()(source)), "msgid", "prediction", "class")
    expected = [
        {
            "msgid": row["msgid"],
            "prediction": reference.predicted(row),
            "class": None if row["airquality_raw"] is None else reference.classified(row["airquality_raw"]),
        }
        for row in wide
    ]
    assert_close(found, chosen(expected, "msgid", "prediction", "class"))


def test_bounds_that_do_not_rise_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^bounds must rise, got \[2, 1\]: the later ones would never be"):
        riot.decision_tree(bounds=((2, "A"), (1, "B")))


def test_annotation_adds_what_is_known_and_puts_strangers_aside(spark: SparkSession) -> None:
    source = spark.createDataFrame([(1, "a"), (2, "x"), (3, None), (4, "b")], "msgid BIGINT, source STRING")
    made = riot.annotate({"a": "hall,solar", "b": "park,radar"})(source)
    assert [tuple(row) for row in made.orderBy("msgid").collect()] == [
        (1, "a", "hall", "solar", None, None),
        (2, "x", None, None, "no metadata for source x", '{"msgid":2,"source":"x"}'),
        (3, None, None, None, "no metadata: source is null", '{"msgid":3}'),
        (4, "b", "park", "radar", None, None),
    ]
    told = riot.annotate({"a": "hall,solar"}, told_by="sensor")(source.selectExpr("*", "'me' as sensor"))
    assert [row["dead_letter"] for row in told.orderBy("msgid").collect()] == [
        None,
        "no metadata for source x",
        "no metadata for sensor me",
        "no metadata for source b",
    ]


def test_senml_that_was_written_reads_back_the_same(spark: SparkSession) -> None:
    source = spark.createDataFrame(line_table(some_lines(5)))
    rows = (
        riot.senml_project()(source)
        .withColumnRenamed("sensor", "source")
        .selectExpr("*", "'hall' as location", "'say \"hi\"' as type")
    )
    written = riot.csv_to_senml()(rows)
    assert json.loads(written.first()["payload"])["e"][-1] == {"u": "string", "n": "type", "sv": 'say "hi"'}
    again = riot.senml_project("payload")(written)
    columns = (*META, *reference.QUANTITIES, "dead_letter")
    assert rows_of(again, *columns) == rows_of(riot.senml_project()(source), *columns)


def test_payloads_write_nulls_and_skip_groups_that_lack_what_they_need(spark: SparkSession) -> None:
    schema = "msgid BIGINT, arrived TIMESTAMP, a DOUBLE, b DOUBLE"
    source = spark.createDataFrame([(1, None, None, 2.0), (2, None, 1.5, None)], schema)
    one = [row["payload"] for row in rows_of(riot.as_payload("a", "b")(source), "msgid", "payload")]
    assert one == ['{"a":null,"b":2.0}', '{"a":1.5,"b":null}']
    several = rows_of(
        riot.as_payloads(["a"], ["b"], needs="a")(source), "msgid", "payload", order=("msgid", "payload")
    )
    assert [(row["msgid"], row["payload"]) for row in several] == [
        (1, '{"b":2.0}'),
        (2, '{"a":1.5}'),
        (2, '{"b":null}'),
    ]


def test_columns_of_other_names_are_given_as_arguments(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(1, "k", "dust", None), (2, "k", "dust", 5.0), (3, "k", "source", 7.0), (4, "k", "dust", None)],
        "id BIGINT, who STRING, what STRING, number DOUBLE",
    )
    names = {"name": "what", "value": "number"}
    filled = riot.interpolate(by=["who", "what"], order="id", **names)(rows)
    assert [row["number"] for row in filled.orderBy("id").collect()] == [0.0, 5.0, 7.0, 5.0]
    ranged = riot.range_filter({"dust": (0, 4)}, **names)(rows)
    assert [row["number"] for row in ranged.orderBy("id").collect()] == [None, None, 7.0, None]
    guesses = spark.createDataFrame(
        [(1, "k", 10.0, 4.0, None), (2, "k", None, None, 3.0), (3, "k", 10.0, 4.0, None)],
        "id BIGINT, who STRING, seen DOUBLE, guess DOUBLE, mean DOUBLE",
    )
    columns = {"prediction": "guess", "average": "mean"}
    off = riot.error_estimate("seen", by="who", order=["id"], **columns)(guesses)
    assert [(row["id"], row["error"]) for row in off.orderBy("id").collect()] == [(1, None), (3, 2.0)]
    each = riot.error_of_row("seen", **columns)(guesses.filter("id = 1").withColumn("mean", guesses["guess"]))
    assert each.first()["error"] == 1.5
    assert riot.published(rows.selectExpr("id", "what as payload"), ["id"]).columns == ["id", "payload"]
