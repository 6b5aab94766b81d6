"""BlockWindowAverage: the mean of every five values, one block after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.riot.rows import CARRIED
from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def block_average(
    column: str = "airquality_raw",
    *,
    size: int = 5,
    by: str = "sensor",
    order: str | Sequence[str] = "msgid",
    carry: Sequence[str] = CARRIED,
    every_row: bool = False,
) -> Transform:
    """One row for each block of `size` values of a key: key, `average`, and `carry` of the row that
    completed it.

    With `every_row` all rows leave as they came, with the `average` of the key's last complete block, null
    before the first. Nulls do not count. With state: sum and number of each key's block, and the last
    average.
    """
    from pyspark.sql import functions as F

    if size < 1:
        raise ValueError(f"a block must hold 1 value or more, got {size}: none would ever be complete")

    def step(state: Fields, row: Fields) -> dict[str, Column]:
        value, begins = row[column], state.n == size
        total = F.when(begins, F.lit(0.0)).otherwise(state.total) + value
        n = F.when(begins, F.lit(0)).otherwise(state.n) + 1
        here = value.isNotNull()
        return {
            "n": F.when(here, n).otherwise(state.n),
            "total": F.when(here, total).otherwise(state.total),
            "average": F.when(here & (n == size), total / float(size)).otherwise(state.average),
        }

    def is_complete(state: Fields, row: Fields) -> Column:
        return (state.n == size) & row[column].isNotNull()

    def apply(rows: DataFrame) -> DataFrame:
        start = {"n": 0, "total": 0.0, "average": F.lit(None).cast("double")}
        leaves = None if every_row else is_complete
        recurrence = Recurrence(start, step, lambda state, row: {"average": state.average}, leaves)
        averaged = scan(rows, recurrence, by=by, order=order)
        return averaged if every_row else averaged.select(by, "average", *carry)

    return apply
