from __future__ import annotations

from statistics import fmean, pvariance
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from penstock import Pipeline
from penstock.errors import PenstockError
from penstock.operators.emulate import emulated, service
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_rows_stay_as_they_are_and_each_is_waited_for(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    rows = spark.range(0, 20, 1, 1).withColumn("units", F.when(F.col("id") < 10, 2.0))
    begun = monotonic()
    kept = service(0.01, units="units")(rows).collect()
    assert sorted(row.id for row in kept) == list(range(20))
    assert monotonic() - begun >= 10 * 2 * 0.01, "ten rows of two units, the others of none"


@pytest.mark.spark
@pytest.mark.parametrize("scv", [0.25, 1.0, 4.0])
def test_draws_have_the_mean_and_the_spread_asked_for_and_repeat_with_the_seed(
    spark: SparkSession, scv: float
) -> None:
    draw = jvm(spark).penstock.EmulatedService.drawn
    drawn = [draw(3, number, scv) for number in range(1500)]
    assert fmean(drawn) == pytest.approx(1.0, abs=4 * (scv / 1500) ** 0.5)
    assert pvariance(drawn) == pytest.approx(scv, rel=0.35)
    assert drawn[:5] == [draw(3, number, scv) for number in range(5)]
    assert drawn[:5] != [draw(4, number, scv) for number in range(5)]


@pytest.mark.spark
def test_the_time_of_a_row_can_follow_from_what_is_in_it(spark: SparkSession) -> None:
    emulated_service, nanos = jvm(spark).penstock.EmulatedService, []
    for key in (5, 6, 5):
        begun = monotonic()
        emulated_service(0.05, 1.0, 3).call(1.0, key)
        nanos.append(monotonic() - begun)
        assert nanos[-1] == pytest.approx(0.05 * emulated_service.drawn(3, key, 1.0), abs=0.03)
    rows = spark.range(0, 3, 1, 1).selectExpr("id", "id % 2 as part")
    assert service(0.001, 0.5, by_row=True)(rows).count() == 3


def test_a_pipeline_tells_which_of_its_operators_only_wait() -> None:
    from penstock import sinks, sources

    pipeline = Pipeline("p")
    rows = pipeline.source("ticks", sources.Rate(1)).operator("sift", service(0.5))
    rows.operator("match", lambda frame: frame).sink("out", sinks.Callback(lambda table, batch: None))
    assert emulated(pipeline) == ("sift",)


def test_no_time_and_a_negative_spread_are_refused() -> None:
    with pytest.raises(PenstockError) as no_time:
        service(0.0)
    assert str(no_time.value) == (
        "seconds per row must be positive and finite, got 0.0: there would be nothing to emulate"
    )
    with pytest.raises(PenstockError) as no_spread:
        service(1.0, scv=-1.0)
    assert str(no_spread.value) == (
        "the squared coefficient of variation of service times must be 0 or more and finite, "
        "got -1.0: no times have it"
    )
