"""PRED's two ready-made models, as expressions: a linear regression and a decision tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COEFFICIENTS: Mapping[str, float] = {
    "temperature": -0.5106896760749683,
    "humidity": 0.1550345386077423,
    "dust": -0.0043941074441107295,
}
INTERCEPT = 37.442739000196276
"""RIoTBench's regression of air quality."""
BOUNDS: Sequence[tuple[float, str]] = ((22.0, "BAD"), (29.0, "GOOD"))
"""RIoTBench's tree: up to 22 BAD, up to 29 GOOD, else VERYGOOD."""


def linear_regression(
    coefficients: Mapping[str, float] = COEFFICIENTS,
    intercept: float = INTERCEPT,
    *,
    into: str = "prediction",
) -> Transform:
    """Adds the prediction of a linear model of some columns; null where one of them is null."""
    from pyspark.sql import functions as F

    def predict(rows: DataFrame) -> DataFrame:
        total = F.lit(float(intercept))
        for name, weight in coefficients.items():
            total = total + F.lit(float(weight)) * F.col(name)
        return rows.withColumn(into, total)

    return predict


def decision_tree(
    column: str = "airquality_raw",
    bounds: Sequence[tuple[float, str]] = BOUNDS,
    otherwise: str = "VERYGOOD",
    *,
    into: str = "class",
) -> Transform:
    """Adds the class of the first bound that the column does not exceed; null where the column is null."""
    from pyspark.sql import functions as F

    limits = [limit for limit, _ in bounds]
    if limits != sorted(limits):
        raise ValueError(f"bounds must rise, got {limits}: the later ones would never be reached")

    def classify(rows: DataFrame) -> DataFrame:
        value = F.col(column)
        found = F.when(value.isNull(), F.lit(None).cast("string"))
        for limit, name in bounds:
            found = found.when(value <= float(limit), F.lit(name))
        return rows.withColumn(into, found.otherwise(F.lit(otherwise)))

    return classify
