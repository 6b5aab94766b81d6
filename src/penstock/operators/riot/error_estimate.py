"""ErrorEstimate: how far predictions are off, in terms of the recent average."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def error_estimate(
    column: str = "airquality_raw",
    *,
    by: str = "sensor",
    order: Sequence[str] = ("msgid",),
    prediction: str = "prediction",
    average: str = "average",
    into: str = "error",
) -> Callable[..., DataFrame]:
    """For each prediction, (observed - prediction) / last block average of its sensor.

    A function of two DataFrames, predictions and averages (`stream.join(name, averages,
    error_estimate())`), or of one that holds both: a row with an `average` is an average, which changes the
    state and does not leave. The error is null until a sensor's first block is complete, and where the
    average is 0; the row leaves all the same. Of rows with the same `order`, the average comes first. With
    state: each sensor's last average.
    """
    from pyspark.sql import functions as F

    def is_average(row: Fields) -> Column:
        return row[average].isNotNull()

    def step(state: Fields, row: Fields) -> dict[str, Column]:
        return {"last": F.coalesce(row[average], state.last)}

    def estimate(state: Fields, row: Fields) -> dict[str, Column]:
        return {into: F.try_divide(row[column] - row[prediction], state.last)}

    def apply(predictions: DataFrame, averages: DataFrame | None = None) -> DataFrame:
        rows = predictions
        if averages is not None:
            rows = predictions.unionByName(averages, allowMissingColumns=True)
        sorted_rows = rows.withColumn("__later", F.col(average).isNull())
        recurrence = Recurrence(
            {"last": F.lit(None).cast("double")}, step, estimate, lambda state, row: ~is_average(row)
        )
        return scan(sorted_rows, recurrence, by=by, order=(*order, "__later")).drop("__later", average)

    return apply


def error_of_row(
    column: str = "airquality_raw",
    *,
    prediction: str = "prediction",
    average: str = "average",
    into: str = "error",
) -> Transform:
    """The same for rows that have `prediction` and `average` already; no state."""
    from pyspark.sql import functions as F

    def apply(rows: DataFrame) -> DataFrame:
        return rows.withColumn(into, F.try_divide(F.col(column) - F.col(prediction), F.col(average)))

    return apply
