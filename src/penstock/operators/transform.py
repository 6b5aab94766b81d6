"""What an operator is: a function from DataFrame to DataFrame; and several of them as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Transform = Callable[["DataFrame"], "DataFrame"]

DEAD_LETTER, RAW = "dead_letter", "raw"
"""Columns of a row that is put aside: why, and the row as it came."""


def in_turn(first: Callable[..., DataFrame], *others: Transform) -> Callable[..., DataFrame]:
    """One operator of several, for one stage: rows go through them in this order.

    Only the first may be a function of several DataFrames.
    """

    def apply(*frames: DataFrame) -> DataFrame:
        rows = first(*frames)
        for each in others:
            rows = each(rows)
        return rows

    return apply
