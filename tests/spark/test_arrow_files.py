from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.conftest import jobs_so_far

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


def test_one_partition_can_be_run_without_a_job(spark: SparkSession, path: Path) -> None:
    frame = planned(spark).coalesce(1)
    expected, before = frame.toArrow(), jobs_so_far(spark)

    table = BatchTable(frame, path).of(frame, here=True)

    assert table == expected
    assert jobs_so_far(spark) == before


def test_several_partitions_and_exchanges_have_their_job(spark: SparkSession, path: Path) -> None:
    several = planned(spark)
    assert BatchTable(several, path).of(several, here=True) == several.toArrow()

    exchanged = spark.range(0, 100, 1, 4).groupBy(F.expr("id % 3 AS key")).count().coalesce(1)
    table = BatchTable(exchanged, path).of(exchanged, here=True)
    assert sorted(table["count"].to_pylist()) == [33, 33, 34]


def test_rows_without_a_job_leave_no_memory_taken(spark: SparkSession, path: Path) -> None:
    arrow = spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()  # type: ignore[union-attr]
    # A sort takes memory of its task; one that fails half-way goes on as if it had not been.
    rows = spark.range(0, 1000, 1, 1).sortWithinPartitions(F.desc("id"))
    failing = rows.withColumn("never", F.when(F.col("id") == 500, F.raise_error(F.lit("half-way"))))
    before = arrow.getAllocatedMemory()

    assert BatchTable(rows, path).of(rows, here=True)["id"].to_pylist() == list(range(999, -1, -1))
    with pytest.raises(Exception, match="half-way"):
        BatchTable(failing, path).of(failing, here=True)

    assert arrow.getAllocatedMemory() == before
    assert BatchTable(rows, path).of(rows, here=True).num_rows == 1000
