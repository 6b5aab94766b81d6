"""Interpolate: an unknown value becomes the mean of the last known ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def interpolate(
    window: int = 5,
    *,
    by: str | Sequence[str] = ("sensor", "name"),
    order: str | Sequence[str] = "msgid",
    skip: str = "source",
    name: str = "name",
    value: str = "value",
) -> Transform:
    """A null `value` becomes the mean of the key's last `window` values, or as many as there were; 0.0 for
    none.

    Only values that came enter the history, never interpolated ones. Rows whose `name` is `skip` pass as they
    are. With state: for each key its last `window` values.
    """
    from pyspark.sql import functions as F

    if window < 1:
        raise ValueError(
            f"window must be 1 or more, got {window}: there would be no value to take the mean of"
        )

    def remember(state: Fields, row: Fields) -> dict[str, Column]:
        longer = F.slice(F.concat(F.array(row[value]), state.last), 1, window)
        return {"last": F.when(row[value].isNull(), state.last).otherwise(longer)}

    def fill(state: Fields, row: Fields) -> dict[str, Column]:
        total = F.aggregate(state.last, F.lit(0.0), lambda sum, each: sum + each)
        mean = F.coalesce(F.try_divide(total, F.size(state.last)), F.lit(0.0))
        return {value: F.when(row[name] != skip, F.coalesce(row[value], mean)).otherwise(row[value])}

    def apply(rows: DataFrame) -> DataFrame:
        start = {"last": F.array().cast("array<double>")}
        return scan(rows, Recurrence(start, remember, fill), by=by, order=order)

    return apply
