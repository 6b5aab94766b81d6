"""DistinctApproxCount: how many different ids there were, after Durand and Flajolet (LogLog)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ALPHA = 0.79402
"""Durand and Flajolet's constant for ranks that count from 0."""
_HASH_BITS = 32


def distinct_count(
    column: str = "sensor",
    *,
    bucket_bits: int = 5,
    into: str = "count",
    by: str | Sequence[str] = "name",
    order: str | Sequence[str] = "msgid",
) -> Transform:
    """After each row the estimated number of different values of `column` in its key so far.

    A sketch of m = 2^`bucket_bits` buckets (RIoTBench: 32) for each key: the first 32 bits of a value's
    SHA-1 give its bucket (the low bits) and the number of zeros at the end of the rest; a bucket keeps the
    greatest. The estimate is 0.79402 m 2^(mean over buckets), rounded down: at least 25 with 32 buckets. A
    null changes nothing.
    """
    from pyspark.sql import functions as F

    if not 1 <= bucket_bits <= 16:
        raise ValueError(f"bucket bits must be from 1 to 16, got {bucket_bits}: RIoTBench has 5")
    buckets = 1 << bucket_bits

    def remember(state: Fields, row: Fields) -> dict[str, Column]:
        at, rank = row["__bucket"], row["__zeros"]
        before = F.slice(state.zeros, F.lit(1), at)
        after = F.slice(state.zeros, at + 2, F.lit(buckets))
        greater = F.concat(before, F.array(rank), after)
        # Most rows change nothing: their array is not made again.
        higher = F.coalesce(F.get(state.zeros, at) < rank, F.lit(False))
        return {
            "zeros": F.when(higher, greater).otherwise(state.zeros),
            "sum": F.when(higher, state.sum + rank - F.get(state.zeros, at)).otherwise(state.sum),
        }

    def estimate(state: Fields, row: Fields) -> dict[str, Column]:
        return {into: F.floor(F.lit(ALPHA * buckets) * F.pow(F.lit(2.0), state.sum / float(buckets)))}

    def apply(rows: DataFrame) -> DataFrame:
        hashed = rows.withColumn("__hash", _hash(F.col(column)))
        rest = F.shiftright(F.col("__hash"), bucket_bits)
        bucket = F.col("__hash").bitwiseAND(buckets - 1).cast("int")
        ready = hashed.withColumn("__bucket", bucket).withColumn("__zeros", _zeros(rest, bucket_bits))
        start = {"zeros": F.array_repeat(F.lit(0), buckets).cast("array<int>"), "sum": F.lit(0)}
        counted = scan(ready.drop("__hash"), Recurrence(start, remember, estimate), by=by, order=order)
        return counted.drop("__bucket", "__zeros")

    return apply


def _hash(value: Column) -> Column:
    """The first 32 bits of the SHA-1, as a number that is not negative."""
    from pyspark.sql import functions as F

    return F.conv(F.substring(F.sha1(value.cast("binary")), 1, 8), 16, 10).cast("bigint")


def _zeros(rest: Column, bucket_bits: int) -> Column:
    """Zeros before the lowest one of what is left of the hash."""
    from pyspark.sql import functions as F

    lowest = rest.bitwiseAND(-rest)
    return F.when(rest == 0, F.lit(_HASH_BITS - bucket_bits)).otherwise(F.bit_count(lowest - 1))
