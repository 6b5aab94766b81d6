"""Annotate: what is known of a sensor is added to its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.operators.java_functions import called, once_per_jvm
from penstock.operators.transform import DEAD_LETTER, RAW, Transform
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def annotate(
    metadata: Mapping[str, str],
    column: str = "source",
    *,
    into: Sequence[str] = ("location", "type"),
    told_by: str | None = None,
) -> Transform:
    """Adds the columns `into` from the metadata of the id in `column`: a text with commas between them.

    An id without metadata, or none at all, is a dead letter: declare the operator with dead_letters=True.
    Where `column` is null, the letter says whose row it is by the column `told_by`.
    The metadata is sent to each JVM once; no join is run.
    """
    from pyspark.sql import functions as F

    lines = [f"{id}\t{text}" for id, text in sorted(metadata.items())]

    def add(rows: DataFrame) -> DataFrame:
        session = rows.sparkSession
        lookup = jvm(session).penstock.Lookup(once_per_jvm(session, "lookup", lines))
        found = rows.withColumn("__found", called(session, lookup, "STRING", F.col(column)))
        # In a step of its own, so that the table is asked once a row.
        parts = F.split(F.col("__found"), ",", len(into))
        added = [F.get(parts, F.lit(at)).alias(name) for at, name in enumerate(into)]
        known = F.col("__found").isNotNull()
        who = [F.concat(F.lit(f"no metadata for {each} "), F.col(each)) for each in (column, told_by) if each]
        reason = F.when(~known, F.coalesce(*who, F.lit(f"no metadata: {column} is null")))
        raw = F.when(~known, F.to_json(F.struct(*rows.columns)))
        return found.select(*rows.columns, *added, reason.alias(DEAD_LETTER), raw.alias(RAW))

    return add
