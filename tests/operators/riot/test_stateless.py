from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from tests.operators.riot import reference
from tests.operators.riot.drawn import assert_each_close, drawn, names, numbers
from tests.operators.riot.inputs import (
    Row,
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
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
META = ("msgid", "time", "longitude", "latitude", "sensor")


def some_lines(seed: int, count: int = 60) -> list[str]:
    chance = random.Random(seed)
    return [
        line(f"s{chance.randrange(9)}", readings(chance), time=chance.randrange(10**13), shuffle=chance)
        for _ in range(count)
    ]


values = st.one_of(st.floats(-1e300, 1e300), st.integers(-(10**6), 10**6))


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A good line of any values, its fields in any order, its numbers as text or as numbers."""
    numbers = dict.fromkeys(("longitude", "latitude", *reference.QUANTITIES), 0.0)
    entries: list[dict[str, object]] = [{"n": "source", "u": "string", "sv": draw(names)}]
    for name in numbers:
        value = draw(values)
        entries.append({"n": name, "u": "per", "v": repr(value) if draw(st.booleans()) else value})
    senml = {"e": draw(st.permutations(entries)), "bt": draw(st.integers(0, 2**53))}
    return f"{senml['bt']}," + json.dumps(senml, ensure_ascii=draw(st.booleans()))


def test_lines_become_observations_or_wide_rows_whatever_stands_in_them(spark: SparkSession) -> None:
    cases = drawn(lines(), 120)
    source = spark.createDataFrame(line_table(cases))
    wide = [reference.wide(at, text) for at, text in enumerate(cases)]
    none = {"dead_letter": None, "raw": None}

    def compare(made: DataFrame, expected: list[Row], *columns: str) -> None:
        found = by_message(made.select(*columns).toArrow().to_pylist(), len(cases))
        wanted = by_message(chosen([{**row, **none} for row in expected], *columns), len(cases))
        assert_each_close(cases, found, wanted)

    columns = (*META, "name", "value", "text", "dead_letter", "raw")
    six = [each for row in wide for each in reference.observations(row)]
    five = [each for row in wide for each in reference.observations(row, with_source=False)]
    compare(riot.senml_parse()(source), six, *columns)
    compare(riot.parse_project()(source), five, *columns)
    compare(riot.senml_project()(source), wide, *META, *reference.QUANTITIES, "dead_letter", "raw")


def by_message(rows: list[Row], count: int) -> list[list[Row]]:
    """Rows apart by their message, of which each is a case."""
    found: list[list[Row]] = [[] for _ in range(count)]
    for row in rows:
        found[row["msgid"]].append(row)
    return [sorted(each, key=lambda row: str(row.get("name"))) for each in found]


near_ends = [end + off for ends in reference.RANGES.values() for end in ends for off in (-1e-9, 0.0, 1e-9)]
observation = st.tuples(
    st.sampled_from(("source", *reference.QUANTITIES)), st.none() | numbers | st.sampled_from(near_ends)
)


def test_values_out_of_range_become_null_and_the_ends_of_a_range_stay(spark: SparkSession) -> None:
    cases = drawn(observation, 300)
    rows = [
        {**row, "msgid": at, "name": name, "value": value}
        for at, ((name, value), row) in enumerate(zip(cases, observed(random.Random(1), 300), strict=False))
    ]
    found = rows_of(riot.range_filter()(frame(spark, rows)), "msgid", "value")
    assert_each_close(cases, found, chosen(map(reference.in_range, rows), "msgid", "value"))


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


five = st.tuples(*[st.none() | st.floats(-1e6, 1e6) | st.sampled_from((22.0, 29.0))] * 5)


def test_models_give_what_their_formulas_say_and_null_for_null(spark: SparkSession) -> None:
    cases = drawn(five, 200)
    wide = [
        {"msgid": at, **dict(zip(reference.QUANTITIES, each, strict=True))} for at, each in enumerate(cases)
    ]
    schema = "msgid BIGINT, " + ", ".join(f"{name} DOUBLE" for name in reference.QUANTITIES)
    source = spark.createDataFrame([tuple(row.values()) for row in wide], schema)
    columns = ("msgid", "prediction", "class")
    found = rows_of(riot.decision_tree()(riot.linear_regression()(source)), *columns)
    expected = [
        {
            **row,
            "prediction": reference.predicted(row),
            "class": None if row["airquality_raw"] is None else reference.classified(row["airquality_raw"]),
        }
        for row in wide
    ]
    assert_each_close(cases, found, chosen(expected, *columns))


def test_known_ids_pass_and_are_annotated_whatever_they_are_made_of(spark: SparkSession) -> None:
    """A Bloom filter may let a stranger through, never stop who is known."""
    cases = drawn(st.tuples(names.filter(lambda id: not set(id) & set("\t\n\r,")), st.booleans()), 200)
    known = {id: f"place of {id},kind" for id, is_known in cases if is_known}
    source = spark.createDataFrame(
        [(at, id) for at, (id, _) in enumerate(cases)], "msgid BIGINT, source STRING"
    )
    tested = riot.bloom_filter(known, "source", name=None, expected=1000, false_positives=1e-6)(source)
    found = rows_of(riot.annotate(known)(tested), "msgid", "source", "location", "type")
    expected = [
        {"msgid": at, "source": id, "location": f"place of {id}", "type": "kind"}
        if id in known
        else {"msgid": at, "source": None, "location": None, "type": None}
        for at, (id, _) in enumerate(cases)
    ]
    assert_each_close(cases, found, chosen(expected, "msgid", "source", "location", "type"))


wide_rows = st.tuples(names, names, names, st.integers(0, 2**53), *[st.none() | st.floats(-1e6, 1e6)] * 7)


def test_senml_is_written_as_json_has_it(spark: SparkSession) -> None:
    cases = drawn(wide_rows, 100)
    numbers_of = ("longitude", "latitude", *reference.QUANTITIES)
    schema = ", ".join(
        ("msgid BIGINT, arrived TIMESTAMP, source STRING, location STRING, type STRING, time BIGINT",
         *(f"{name} DOUBLE" for name in numbers_of))
    )  # fmt: skip
    source = spark.createDataFrame([(at, None, *case) for at, case in enumerate(cases)], schema)
    written = rows_of(riot.csv_to_senml()(source), "msgid", "payload")
    units = {"longitude": "lon", "latitude": "lat", "temperature": "far"}
    found, expected = [], []
    for row, (id, place, kind, time, *values_of) in zip(written, cases, strict=True):
        entries = [{"u": "string", "n": "source", "sv": id}]
        for name, value in zip(numbers_of, values_of, strict=True):
            said = {} if value is None else {"v": value}
            entries.append({"u": units.get(name, "per"), "n": name, **said})
        entries += [{"u": "string", "n": "location", "sv": place}, {"u": "string", "n": "type", "sv": kind}]
        expected.append(json.loads(json.dumps({"e": entries, "bt": time})))
        senml = json.loads(row["payload"])
        senml["e"] = [{**each, "v": float(each["v"])} if "v" in each else each for each in senml["e"]]
        found.append(senml)
    assert_each_close(cases, found, expected)


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
