from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.bench.batching.encryption import encrypt_rows_per_second

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_the_rate_counts_whole_passes_over_the_rows_and_leaves_nothing_cached(spark: SparkSession) -> None:
    before = len(spark.sparkContext._jsc.getPersistentRDDs())
    assert encrypt_rows_per_second(spark, rows=20_000, seconds=0.2) > 1_000
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before
