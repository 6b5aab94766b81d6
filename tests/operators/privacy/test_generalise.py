from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.operators.privacy import generalise_place, generalise_time
from penstock.operators.privacy.columns import ColumnError
from penstock.pipeline.latency import DurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STEPS = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "1d": timedelta(days=1),
    "90s": timedelta(seconds=90),
}
PLACES = {"room 1.01": "floor 1", "room 1.02": "floor 1", "room 2.01": "floor 2", "": "nowhere"}


@pytest.mark.spark
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seconds=st.lists(st.floats(-2e9, 4e9), min_size=20, max_size=60),
    step=st.sampled_from(sorted(STEPS)),
)
def test_a_time_becomes_the_start_of_its_step_whatever_the_sessions_time_zone(
    spark: SparkSession, seconds: list[float], step: str
) -> None:
    from pyspark.sql import functions as F

    times = [EPOCH + timedelta(seconds=each) for each in seconds]
    rows = spark.createDataFrame([(at,) for at in times], "at TIMESTAMP")
    made = generalise_time("at", step)(rows).select(F.unix_micros("at")).collect()
    wanted = [at - (at - EPOCH) % STEPS[step] for at in times]
    assert [row[0] for row in made] == [(at - EPOCH) // timedelta(microseconds=1) for at in wanted]


@pytest.mark.spark
def test_a_time_can_be_put_beside_the_exact_one_and_null_stays_null(spark: SparkSession) -> None:
    rows = spark.sql("SELECT timestamp'2026-11-16 10:14:59.5 UTC' AS at UNION ALL SELECT null")
    made = (
        generalise_time("at", "1h", into="hour")(rows)
        .selectExpr("at", "unix_seconds(hour) AS hour")
        .collect()
    )
    hour = int(datetime(2026, 11, 16, 10, tzinfo=UTC).timestamp())
    assert {(row["at"] is None, row["hour"]) for row in made} == {(False, hour), (True, None)}


@pytest.mark.spark
def test_a_place_becomes_its_coarser_one_and_an_unknown_one_is_never_let_through(spark: SparkSession) -> None:
    fine = ["room 1.01", "room 2.01", "", "room 3.01", "ROOM 1.01", " room 1.01", "floor 1", None]
    rows = spark.createDataFrame([(place,) for place in fine], "place STRING")
    wanted = ["floor 1", "floor 2", "nowhere", None, None, None, None, None]
    assert [row[0] for row in generalise_place("place", PLACES)(rows).collect()] == wanted
    beside = generalise_place("place", PLACES, into="floor")(rows).collect()
    assert [tuple(row) for row in beside] == list(zip(fine, wanted, strict=True))


@pytest.mark.spark
def test_columns_that_cannot_be_generalised_are_refused(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("x", 1)], "place STRING, at BIGINT")
    with pytest.raises(ColumnError, match="generalise_time: column 'at' must be a TIMESTAMP, got BIGINT"):
        generalise_time("at", "1h")(rows)
    with pytest.raises(ColumnError, match="generalise_place: column 'room' must be there, got place, at"):
        generalise_place("room", PLACES)(rows)
    with pytest.raises(ColumnError, match="into must name a new column, got 'at', which is there"):
        generalise_place("place", PLACES, into="at")(rows)


def test_steps_and_places_that_say_nothing_are_refused() -> None:
    with pytest.raises(DurationError, match="step of a generalised time must be positive, got 0 ms"):
        generalise_time("at", "0s")
    with pytest.raises(ColumnError, match="places must not be empty"):
        generalise_place("place", {})
    with pytest.raises(ColumnError, match="places must be text to text, got 'x' to None"):
        generalise_place("place", {"x": None})  # type: ignore[dict-item]
    for fine, coarse in (("a\tb", "c"), ("a\nb", "c"), ("a", "b\nroom 1.01\tc")):
        with pytest.raises(ColumnError, match="places must have no line break, and fine ones no tab"):
            generalise_place("place", {fine: coarse})
