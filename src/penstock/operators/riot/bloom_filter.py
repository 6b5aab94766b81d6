"""BloomFilterCheck: ids that are not among those known are stopped or forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from penstock.operators.java_functions import called, once_per_jvm
from penstock.operators.transform import DEAD_LETTER, RAW, Transform
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MISSES = ("null", "drop", "dead_letter")


def bloom_filter(
    ids: Iterable[str],
    column: str = "text",
    *,
    name: str | None = "source",
    misses: Literal["null", "drop", "dead_letter"] = "null",
    name_column: str = "name",
    expected: int = 20_000_000,
    false_positives: float = 0.01,
) -> Transform:
    """Tests `column` against a Bloom filter of `ids`, in rows of that `name` only (None: in all rows).

    A miss becomes null; with `misses="dead_letter"` its row is put aside with the reason (declare the
    operator with dead_letters=True), and with "drop" it goes, which nothing tells of. A null is no miss.
    The filter is made once in each JVM, as large as `expected` ids at that share of false positives ask
    for: 24 MB by default, however few ids it holds.
    """
    from pyspark.sql import functions as F

    if misses not in _MISSES:
        raise ValueError(f"misses must be one of {', '.join(_MISSES)}, got {misses!r}: rows would go nowhere")
    known = sorted(set(ids))

    def test(rows: DataFrame) -> DataFrame:
        session = rows.sparkSession
        shared = once_per_jvm(session, f"bloom {expected} {false_positives}", known)
        bloom = jvm(session).penstock.Bloom(shared, expected, false_positives)
        found = F.coalesce(called(session, bloom, "BOOLEAN", F.col(column)), F.lit(True))
        passes = found if name is None else F.when(F.col(name_column) == name, found).otherwise(F.lit(True))
        if misses == "drop":
            return rows.filter(passes)
        if misses == "dead_letter":
            return _told(rows, column, passes)
        return rows.withColumn(column, F.when(passes, F.col(column)))

    return test


def _told(rows: DataFrame, column: str, passes: Column) -> DataFrame:
    """Rows that were put aside before stay so, for the reason that they have."""
    from pyspark.sql import functions as F

    columns = [name for name in rows.columns if name not in (DEAD_LETTER, RAW)]
    miss = {
        DEAD_LETTER: F.concat(F.lit(f"no {column} of this name is known: "), F.col(column)),
        RAW: F.to_json(F.struct(*columns)),
    }
    asked = rows.withColumn("__passes", passes)
    told = []
    for name, said in miss.items():
        missed = F.when(~F.col("__passes"), said)
        told.append((F.coalesce(F.col(name), missed) if name in rows.columns else missed).alias(name))
    return asked.select(*columns, *told)
