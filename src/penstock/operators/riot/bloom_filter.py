"""BloomFilterCheck: ids that are not among those known are stopped or forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from penstock.operators.java_functions import called, once_per_jvm
from penstock.operators.transform import Transform
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def bloom_filter(
    ids: Iterable[str],
    column: str = "text",
    *,
    name: str | None = "source",
    misses: Literal["null", "drop"] = "null",
    expected: int = 20_000_000,
    false_positives: float = 0.01,
) -> Transform:
    """Tests `column` against a Bloom filter of `ids`, in rows of that `name` only (None: in all rows).

    A miss becomes null, or with `misses="drop"` its row goes. The filter is made once in each JVM, as large
    as `expected` ids at that share of false positives ask for: 24 MB by default, however few ids it holds.
    A null is no miss.
    """
    from pyspark.sql import functions as F

    if misses not in ("null", "drop"):
        raise ValueError(f"misses must be 'null' or 'drop', got {misses!r}: rows would go nowhere")
    known = sorted(set(ids))

    def test(rows: DataFrame) -> DataFrame:
        session = rows.sparkSession
        shared = once_per_jvm(session, f"bloom {expected} {false_positives}", known)
        bloom = jvm(session).penstock.Bloom(shared, expected, false_positives)
        found = F.coalesce(called(session, bloom, "BOOLEAN", F.col(column)), F.lit(True))
        passes = found if name is None else F.when(F.col("name") == name, found).otherwise(F.lit(True))
        if misses == "drop":
            return rows.filter(passes)
        return rows.withColumn(column, F.when(passes, F.col(column)))

    return test
