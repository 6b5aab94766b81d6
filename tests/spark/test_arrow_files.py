from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.spark.arrow_files import BatchTable
from penstock.spark.session import prepare_session


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> Path:
    prepare_session(spark)
    return tmp_path / "batch.arrow"


def planned(spark: SparkSession) -> DataFrame:
    return spark.range(0, 10, 1, 4).selectExpr(
        "id", "timestamp_seconds(id) AS at", "named_struct('x', id) AS s"
    )


def already_run(spark: SparkSession) -> DataFrame:
    rows = [(n, datetime(2026, 1, 1, tzinfo=UTC), {"a": n}) for n in range(10)]
    return spark.createDataFrame(
        spark.sparkContext.parallelize(rows, 3), "n bigint, at timestamp, m map<string,int>"
    )


@pytest.mark.parametrize("make", [planned, already_run])
def test_rows_of_all_partitions_come_as_spark_gives_them(
    spark: SparkSession, path: Path, make: Callable[[SparkSession], DataFrame]
) -> None:
    frame = make(spark)

    table = BatchTable(frame, path).of(frame)

    assert table.num_rows == 10
    assert table == frame.toArrow()


def test_partitions_without_rows_do_not_end_the_others(spark: SparkSession, path: Path) -> None:
    frame = spark.range(0, 8, 1, 4).filter("id IN (3, 7)")

    assert BatchTable(frame, path).of(frame)["id"].to_pylist() == [3, 7]


def test_no_rows_have_their_columns(spark: SparkSession, path: Path) -> None:
    frame = planned(spark).filter("id > 100")

    assert BatchTable(frame, path).of(frame) == frame.toArrow()
