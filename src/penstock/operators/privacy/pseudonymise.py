"""Pseudonyms: the same text for the same person, which nobody without the key can make or undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.operators.java_functions import called_each_time
from penstock.operators.privacy.columns import bytes_of, is_time, replacing, time_of
from penstock.operators.privacy.keys import Keys
from penstock.operators.transform import Transform
from penstock.pipeline.latency import Duration, parse_positive
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def pseudonymise(
    column: str,
    keys: Keys,
    *,
    into: str | None = None,
    period: Duration | None = None,
    at: str = "at",
    purpose: str | None = None,
) -> Transform:
    """The column's values become pseudonyms: HMAC-SHA-256 with the current key, 64 hexadecimal digits.

    With `into` the pseudonym goes into a new column and the value stays. With `period` a value has another
    pseudonym in each period of the event time `at`, counted from 1970 in UTC. `purpose`, the column's name
    unless given, keeps pseudonyms apart: they can be joined only where it is the same. Null stays null, and
    a row without a time has no pseudonym where one is needed.
    """
    period_micros = 0 if period is None else _micros(period)

    def hide(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        session, operator = rows.sparkSession, "pseudonymise"
        value = bytes_of(rows, column, operator)
        has_time = period is not None or is_time(rows, at)
        time = time_of(rows, at, operator) if has_time else F.lit(None).cast("bigint")
        target = replacing(rows, column, into, operator)
        function = jvm(session).penstock.Pseudonym(
            keys.place(session), column if purpose is None else purpose, period_micros, has_time
        )
        made = called_each_time(session, operator, function, "STRING", value, time)
        return rows.withColumn(target, made)

    return hide


def _micros(period: Duration) -> int:
    seconds = parse_positive(period, "period of pseudonyms", "there would be no pseudonyms")
    return max(1, round(seconds * 1e6))
