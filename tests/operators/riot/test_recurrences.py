from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.operators.riot import reference
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


@dataclass(frozen=True)
class Case:
    """An operator over observations, its reference, and the columns that both must agree on."""

    operator: Callable[[], Any]
    expected: Callable[[Sequence[Row]], list[Row]]
    columns: tuple[str, ...]


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
    "distinct_count": Case(riot.distinct_count, reference.distinct, ("msgid", "name", "count")),
    "block_average": Case(lambda: riot.block_average("value"), in_blocks, ("msgid", "sensor", "average")),
    "error_estimate": Case(estimating, estimated, ("msgid", "sensor", "error")),
}


@pytest.mark.parametrize("name", CASES)
@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(st.integers(0, 2**32))
def test_an_operator_with_state_equals_the_plain_computation(
    spark: SparkSession, name: str, seed: int
) -> None:
    case, chance = CASES[name], random.Random(seed)
    rows = observed(chance, 400, nulls=0.2, sensors=chance.choice((1, 3, 40)))
    shuffled = chance.sample(rows, len(rows))
    found = rows_of(case.operator()(frame(spark, shuffled)), *case.columns)
    assert_close(found, chosen(case.expected(rows), *case.columns))


def test_messages_are_joined_as_soon_as_all_their_observations_are_there(spark: SparkSession) -> None:
    chance = random.Random(4)
    rows = [{**row, "msgid": at // 6, "name": name} for at, row in enumerate(observed(chance, 360, nulls=0.3))
            for name in [(("source", *reference.QUANTITIES)[at % 6])]]  # fmt: skip
    for row in rows:
        row["text"] = row["sensor"] if row["name"] == "source" else None
    missing = [row for row in rows if row["msgid"] % 7 or row["name"] != "light"]
    extra = [{**rows[0], "name": "noise", "msgid": msgid} for msgid in range(60)]
    found = rows_of(
        riot.join_by_message()(frame(spark, chance.sample([*missing, *extra], len(missing) + 60))),
        "msgid", "source", *reference.QUANTITIES,
    )  # fmt: skip
    expected = reference.joined(missing)
    assert len(expected) == 60 - 9
    assert found == chosen(expected, "msgid", "source", *reference.QUANTITIES)


def test_a_field_that_comes_twice_replaces_the_former_and_two_messages_of_one_id_are_told_apart(
    spark: SparkSession,
) -> None:
    [row] = observed(random.Random(1), 1)
    six = [{**row, "name": name, "value": 1.0, "text": "id"} for name in ("source", *reference.QUANTITIES)]
    again = [{**each, "time": 900 + number} for number in (1, 2) for each in six]
    made = riot.join_by_message()(frame(spark, random.Random(2).sample(again, 12)))
    assert sorted(each["time"] for each in made.collect()) == [901, 902]
    twice = [{**six[1], "time": 1, "value": 7.0}, {**six[1], "time": 2, "value": 8.0}]
    [one] = riot.join_by_message()(frame(spark, [*twice, six[0], *six[2:]])).collect()
    assert one["temperature"] == 8.0


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
        found = {row["msgid"]: row for row in kept[name].rows}
        assert_close(chosen(found.values(), *case.columns), chosen(case.expected(rows), *case.columns))
