from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.operators.riot import reference
from tests.operators.riot.drawn import SEED, as_rows, assert_each_close, by_case, drawn, series
from tests.operators.riot.inputs import (
    OBSERVATION_DDL,
    OBSERVATIONS,
    Row,
    assert_close,
    chosen,
    frame,
    observed,
    rows_of,
)
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import Kept

from penstock import Pipeline, sources
from penstock.operators import riot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NAMES = ("source", *reference.QUANTITIES)


@dataclass(frozen=True)
class Case:
    """An operator over observations, its reference, and the columns that both must agree on."""

    operator: Callable[[], Any]
    expected: Callable[[Sequence[Row]], list[Row]]
    columns: tuple[str, ...]
    apart_by: str = "sensor"


def by_id(row: Row) -> int:
    return int(row["msgid"])


def sixths(rows: Sequence[Row]) -> list[Row]:
    """Every six observations as those of a message, and every message twice."""
    found = [
        {**row, "msgid": row["msgid"] // 12, "sensor": "s", "name": NAMES[row["msgid"] % 6],
         "value": row["msgid"] // 12 + 1.0, "text": None}
        for row in rows
    ]  # fmt: skip
    return reference.joined(found)


def joining() -> Any:
    name = f"element_at(array{NAMES}, cast(msgid % 6 + 1 as int)) as name"
    read = ("arrived", "time", "longitude", "latitude", "'s' as sensor", name, "text")
    return riot.in_turn(
        lambda rows: rows.selectExpr("msgid div 12 as msgid", "msgid div 12 + 1.0D as value", *read),
        riot.join_by_message(),
    )


def in_blocks(rows: Sequence[Row]) -> list[Row]:
    return reference.block_averages([{**row, "airquality_raw": row["value"]} for row in rows])


def estimated(rows: Sequence[Row]) -> list[Row]:
    """Observations read as predictions of 1.5, or as averages where they are temperatures."""
    return reference.errors(
        [
            {
                **row,
                "airquality_raw": row["value"] or 0.0,
                "prediction": 1.5,
                "average": row["value"] if row["name"] == "temperature" else None,
            }
            for row in rows
        ]
    )


def estimating() -> Any:
    read = "case when name = 'temperature' then value end as average"
    return riot.in_turn(
        lambda rows: rows.selectExpr("*", "coalesce(value, 0) as airquality_raw", "1.5D as prediction", read),
        riot.error_estimate(),
    )


CASES = {
    "interpolate": Case(riot.interpolate, reference.interpolated, ("msgid", "value")),
    "kalman": Case(riot.kalman, reference.kalman, ("msgid", "value")),
    "sliding_linear_regression": Case(
        riot.sliding_linear_regression, reference.trends, ("msgid", "predictions")
    ),
    "second_order_moment": Case(riot.second_order_moment, reference.moments, ("msgid", "moment")),
    "distinct_count": Case(
        riot.distinct_count, reference.distinct, ("msgid", "name", "count"), apart_by="name"
    ),
    "block_average": Case(lambda: riot.block_average("value"), in_blocks, ("msgid", "sensor", "average")),
    "error_estimate": Case(estimating, estimated, ("msgid", "sensor", "error")),
    "join_by_message": Case(joining, sixths, ("msgid", "time", *NAMES)),
}


@pytest.mark.parametrize("name", [name for name in CASES if name != "join_by_message"])
def test_an_operator_with_state_equals_the_plain_computation(spark: SparkSession, name: str) -> None:
    case, cases = CASES[name], drawn(series())
    rows = as_rows(cases, apart_by=case.apart_by)
    shuffled = random.Random(SEED).sample(rows, len(rows))
    found = chosen(case.operator()(frame(spark, shuffled)).toArrow().to_pylist(), *case.columns)
    expected = chosen(case.expected(rows), *case.columns)
    assert_each_close(cases, by_case(found, len(cases), by_id), by_case(expected, len(cases), by_id))


def test_every_row_can_leave_with_the_last_average_or_without_a_trend(spark: SparkSession) -> None:
    rows = observed(random.Random(9), 200, nulls=0.1)
    averaged = rows_of(riot.block_average("value", every_row=True)(frame(spark, rows)), "msgid", "average")
    blocks = {row["msgid"]: row for row in in_blocks(rows)}
    last: dict[str, float] = {}
    for row, found in zip(rows, averaged, strict=True):
        if row["msgid"] in blocks:
            last[row["sensor"]] = blocks[row["msgid"]]["average"]
        assert found["average"] == last.get(row["sensor"])
    made = riot.sliding_linear_regression(every_row=True)(frame(spark, rows))
    ahead = {row["msgid"]: row["predictions"] for row in reference.trends(rows)}
    expected = [{"msgid": row["msgid"], "predictions": ahead.get(row["msgid"])} for row in rows]
    assert_close(rows_of(made, "msgid", "predictions"), expected)


def test_predictions_and_averages_are_taken_from_two_frames(spark: SparkSession) -> None:
    predictions = spark.createDataFrame(
        [(1, "a", 10.0, 4.0), (2, "a", 10.0, 4.0), (3, "b", 10.0, 4.0), (5, "a", 10.0, 4.0)],
        "msgid BIGINT, sensor STRING, airquality_raw DOUBLE, prediction DOUBLE",
    )
    averages = spark.createDataFrame(
        [(2, "a", 3.0), (4, "a", 0.0)], "msgid BIGINT, sensor STRING, average DOUBLE"
    )
    made = riot.error_estimate()(predictions, averages)
    found = rows_of(made, "msgid", "error")
    assert [row["error"] for row in found] == [None, 2.0, None, None]
    assert "average" not in made.columns


def turns_of(rows: Sequence[Row], chance: random.Random) -> Iterator[pa.Table]:
    start = 0
    while start < len(rows):
        size = chance.choice((1, 7, 40, 90))
        yield pa.Table.from_pylist(list(rows[start : start + size]), schema=OBSERVATIONS)
        start += size


def test_turns_of_any_size_and_a_restart_in_the_middle_change_nothing(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    chance, source = random.Random(3), spool()
    rows = observed(chance, 420, nulls=0.15)
    kept = {name: Kept() for name in CASES}
    segments = list(turns_of(rows, chance))
    middle = len(segments) // 2
    for part in (segments[:middle], segments[middle:]):
        pipeline = Pipeline("p")
        stream = pipeline.source("rows", sources.FromSpool(source, OBSERVATION_DDL))
        for name, case in CASES.items():
            stream.operator(name, case.operator(), stateful=True).sink(f"{name} out", kept[name].sink)
        runs = engine(consumption="at-most-60")
        runs.submit(pipeline)
        for segment in part:
            source.append(segment)
        runs.drain()
        assert {report.kind for report in runs.stages()} == {"held"}
        runs.stop()
    for name, case in CASES.items():
        assert len(kept[name].turns) > 4
        assert_close(chosen(kept[name].rows, *case.columns), chosen(case.expected(rows), *case.columns))
