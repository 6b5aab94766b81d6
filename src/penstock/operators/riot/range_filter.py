"""RangeFilter: readings that no sensor should give become unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0.7, 35.1),
    "humidity": (20.3, 69.1),
    "light": (0.0, 5153.0),
    "dust": (83.36, 3322.67),
    "airquality_raw": (12.0, 49.0),
}
"""RIoTBench's ranges for Sense-Your-City, both ends included."""


def range_filter(
    ranges: Mapping[str, tuple[float, float]] = RANGES, *, name: str = "name", value: str = "value"
) -> Transform:
    """Observations whose `value` is outside the range of its `name` get null instead; no row is dropped.

    A name without a range passes as it is.
    """
    from pyspark.sql import functions as F

    for each, (low, high) in ranges.items():
        if not low <= high:
            raise ValueError(f"range of {each} must not be empty, got {low} to {high}: all would be null")

    def keep_in_range(rows: DataFrame) -> DataFrame:
        checked = number = F.col(value)
        for wanted, (low, high) in ranges.items():
            inside = F.when(number.between(float(low), float(high)), number)
            checked = F.when(F.col(name) == wanted, inside).otherwise(checked)
        return rows.withColumn(value, checked)

    return keep_in_range
