"""KalmanFilter: noisy readings of a value that drifts, smoothed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def kalman(
    column: str = "value",
    *,
    into: str = "value",
    process_noise: float = 0.125,
    sensor_noise: float = 0.32,
    start_error: float = 30.0,
    by: str | Sequence[str] = ("sensor", "name"),
    order: str | Sequence[str] = "msgid",
) -> Transform:
    """The estimate x after each reading z of a key, in one dimension, with p the variance of its error.

    p' = p + q; g = p' / (p' + r); x = x + g (z - x); p = (1 - g) p', from x = 0 and p = `start_error`.
    A null reading changes nothing, and the estimate so far leaves. With state: x and p of each key.
    """
    from pyspark.sql import functions as F

    def step(state: Fields, row: Fields) -> dict[str, Column]:
        z = row[column]
        p = state.p + process_noise
        gain = p / (p + sensor_noise)
        return {
            "x": F.when(z.isNull(), state.x).otherwise(state.x + gain * (z - state.x)),
            "p": F.when(z.isNull(), state.p).otherwise((1.0 - gain) * p),
        }

    def apply(rows: DataFrame) -> DataFrame:
        start = {"x": 0.0, "p": float(start_error)}
        recurrence = Recurrence(start, step, lambda state, row: {into: state.x})
        return scan(rows, recurrence, by=by, order=order)

    return apply
