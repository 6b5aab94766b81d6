"""The workflow's own operators, on rows in any order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.workloads.wifi.associations import ARROW
from penstock.workloads.wifi.steps import contacts, moves

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NINE = datetime(2020, 1, 6, 9, tzinfo=UTC)


def seconds(at: datetime) -> float:
    return (at - NINE) / timedelta(seconds=1)


def frame(spark: SparkSession, *rows: tuple[str | None, str | None, float]) -> DataFrame:
    """Rows of (subject, access point, seconds)."""
    named: list[dict[str, Any]] = [
        {"subject": subject, "mac": "m", "ap": ap, "at": NINE + timedelta(seconds=at)}
        for subject, ap, at in rows
    ]
    return spark.createDataFrame(pa.Table.from_pylist(named, schema=ARROW))


@pytest.mark.spark
def test_contacts_are_told_by_time_and_not_by_the_order_of_rows(spark: SparkSession) -> None:
    rows = frame(
        spark,
        ("just in time", "a", 70.0),
        ("too late", "a", 70.1),
        ("ill", "a", 10.0),
        ("before", "a", 9.9),
        ("next door", "b", 11.0),
        ("also ill", "a", 5.0),
        ("nowhere", None, 12.0),
        (None, "a", 13.0),
    )
    made = contacts({"ill", "also ill"}, within="1m")(rows)
    assert made.columns == ["subject", "mac", "ap", "at", "exposed_at"]
    found = {(row["subject"], seconds(row["exposed_at"])) for row in made.toArrow().to_pylist()}
    assert found == {("just in time", 10.0), ("before", 5.0), (None, 10.0)}
    assert "ill" not in made._jdf.queryExecution().toString()


@pytest.mark.spark
def test_moves_pass_over_rows_without_a_building_and_tell_where_from(spark: SparkSession) -> None:
    rows = frame(
        spark,
        ("p", "b", 3.0),
        ("p", "a", 1.0),
        ("p", None, 2.0),
        ("p", "b", 4.0),
        ("p", "a", 5.0),
        ("q", "a", 2.5),
        ("r", None, 1.0),
        ("r", "a", 2.0),
    ).withColumnRenamed("ap", "building")
    made = moves()(rows).toArrow().to_pylist()
    found = sorted((row["subject"], seconds(row["at"]), row["origin"], row["building"]) for row in made)
    assert found == [("p", 3.0, "a", "b"), ("p", 5.0, "b", "a")]


@pytest.mark.spark
def test_with_all_others_kept_a_row_tells_nothing_of_who_did_not_move(spark: SparkSession) -> None:
    rows = frame(
        spark, ("p", "a", 1.0), ("p", None, 2.0), ("p", "b", 3.0), ("q", "a", 2.5)
    ).withColumnRenamed("ap", "building")
    made = moves(keep_others=True)(rows)
    assert made.columns == [*moves()(rows).columns]
    found = sorted(
        (seconds(row["at"]), row["subject"], row["origin"], row["building"])
        for row in made.toArrow().to_pylist()
    )
    assert found == [
        (1.0, None, None, None),
        (2.0, None, None, None),
        (2.5, None, None, None),
        (3.0, "p", "a", "b"),
    ]


def test_a_time_since_that_warns_nobody_is_refused() -> None:
    with pytest.raises(PenstockError) as error:
        contacts(set(), within="0s")
    assert str(error.value) == "time since must be positive, got 0 ms: nobody would ever be warned"
