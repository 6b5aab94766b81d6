"""SlidingLinearRegression: where a series is heading, from its last few values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def sliding_linear_regression(
    column: str = "value",
    *,
    window: int = 10,
    horizon: int = 10,
    into: str = "predictions",
    by: str | Sequence[str] = ("sensor", "name"),
    order: str | Sequence[str] = "msgid",
    every_row: bool = False,
) -> Transform:
    """From a key's item `window` + 1 on, an array of predictions for its next `horizon` items.

    They lie on the line of least squares through the last `window` pairs (index, value). Rows before that
    do not leave, nor do rows without a value, which do not count; with `every_row` they do, with null.
    With state: the last `window` values of each key.
    """
    from pyspark.sql import functions as F

    if window < 2 or horizon < 1:
        raise ValueError(f"window must be 2 or more and horizon 1 or more, got {window} and {horizon}")
    centre = (window - 1) / 2
    squares = sum((at - centre) ** 2 for at in range(window))
    # The newest value comes first, at index n: its distance from the middle of the window is `centre`.
    weights = [(centre - at) / squares for at in range(window)]

    def remember(state: Fields, row: Fields) -> dict[str, Column]:
        value = row[column]
        longer = F.slice(F.concat(F.array(value), state.last), 1, window)
        more = state.seen + F.when(value.isNull(), F.lit(0)).otherwise(F.lit(1))
        return {"seen": more, "last": F.when(value.isNull(), state.last).otherwise(longer)}

    def is_long_enough(state: Fields, row: Fields) -> Column:
        return (state.seen > window) & row[column].isNotNull()

    def line(state: Fields, row: Fields) -> dict[str, Column]:
        weighted = [F.get(state.last, F.lit(at)) * weight for at, weight in enumerate(weights)]
        slope = F.when(is_long_enough(state, row), sum(weighted[1:], weighted[0]))
        total = F.aggregate(state.last, F.lit(0.0), lambda sum, value: sum + value)
        return {"__slope": slope, "__mean": total / float(window)}

    def apply(rows: DataFrame) -> DataFrame:
        start = {"seen": F.lit(0).cast("bigint"), "last": F.array().cast("array<double>")}
        leaves = None if every_row else is_long_enough
        fitted = scan(rows, Recurrence(start, remember, line, leaves), by=by, order=order)
        slope, mean = F.col("__slope"), F.col("__mean")
        ahead = F.array(*(mean + slope * (centre + at) for at in range(1, horizon + 1)))
        return fitted.withColumn(into, F.when(slope.isNotNull(), ahead)).drop("__slope", "__mean")

    return apply
