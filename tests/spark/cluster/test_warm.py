from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_what_executors_do_before_their_first_task_fits_this_spark(spark: SparkSession) -> None:
    settings = spark.sparkContext._jsc.sc().conf()  # type: ignore[union-attr]
    assert jvm(spark).penstock.WarmExecutors.warm(settings) == 200
