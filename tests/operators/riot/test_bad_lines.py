from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.operators.riot.inputs import line, line_table, readings

from penstock.operators import riot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NOT_SENML = 'not SenML: expected timestamp,{"e":[{"n":name,"v":value},...],"bt":milliseconds}'
GOOD = line("s1", [8.0, 53.7, 0.0, 411.02, 20.0])


def changed(**fields: Any) -> str:
    """The good line with other values; None leaves a field out."""
    senml = json.loads(GOOD.split(",", 1)[1])
    entries = []
    for entry in senml["e"]:
        key = "sv" if entry["n"] == "source" else "v"
        value = fields.get(entry["n"], entry[key])
        if value is not None:
            entries.append({**entry, key: value})
    whole = {"e": entries, "bt": fields.get("bt", senml["bt"])}
    return "1," + json.dumps({key: value for key, value in whole.items() if value is not None})


BAD = {
    "": NOT_SENML,
    "nonsense": NOT_SENML,
    GOOD[:-9]: NOT_SENML,
    GOOD + "}": NOT_SENML,
    '1,{"e":7,"bt":1}': NOT_SENML,
    "1,[1,2]": NOT_SENML,
    '1,{"bt":1}': "field source is missing",
    changed(source=None): "field source is missing",
    changed(source=""): "field source is missing",
    changed(dust=None): "field dust is missing",
    changed(latitude=None): "field latitude is missing",
    changed(bt=None): "field bt is missing",
    changed(bt="yesterday"): "field bt must be a whole number, got yesterday",
    changed(temperature="warm"): "field temperature must be a number, got warm",
    changed(humidity=""): "field humidity must be a number, got ",
    changed(light="NaN"): "field light must be a number, got NaN",
    changed(light="-Infinity"): "field light must be a number, got -Infinity",
    changed(airquality_raw=True): "field airquality_raw must be a number, got true",
    changed(airquality_raw="9" * 200 + "x"): "field airquality_raw must be a number, got " + "9" * 80,
}


@pytest.mark.parametrize(
    ("operator", "rows_each"),
    [(riot.senml_parse, 6), (riot.parse_project, 5), (riot.senml_project, 1)],
    ids=["senml_parse", "parse_project", "senml_project"],
)
def test_a_bad_line_is_one_dead_letter_with_its_reason_and_harms_no_other(
    spark: SparkSession, operator: Any, rows_each: int
) -> None:
    chance = random.Random(1)
    good = [line(f"s{number}", readings(chance)) for number in range(len(BAD))]
    mixed = [text for pair in zip(good, BAD, strict=True) for text in pair]
    made = operator()(spark.createDataFrame(line_table([*mixed, None]))).collect()
    dead = [row for row in made if row["dead_letter"] is not None]
    assert {row["raw"]: row["dead_letter"] for row in dead} == {**BAD, None: "no text: column value is null"}
    assert len(dead) == len(BAD) + 1
    alive = [row["msgid"] for row in made if row["dead_letter"] is None]
    assert sorted(alive) == sorted(2 * number for number in range(len(good)) for _ in range(rows_each))


def test_of_a_field_that_stands_twice_one_is_taken_and_unknown_fields_are_left_out(
    spark: SparkSession,
) -> None:
    senml = json.loads(GOOD.split(",", 1)[1])
    senml["e"] += [{"n": "dust", "u": "per", "v": "1"}, {"n": "noise", "u": "db", "v": "loud"}]
    text = json.dumps(senml)
    [row] = riot.senml_project()(spark.createDataFrame(line_table([text]))).collect()
    assert (row["dead_letter"], row["dust"], row["sensor"]) == (None, 411.02, "s1")
