"""Generalisation: times and places made coarse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.operators.java_functions import called, once_per_jvm
from penstock.operators.privacy.columns import ColumnError, existing, replacing, time_of
from penstock.operators.transform import Transform
from penstock.pipeline.latency import Duration, parse_positive
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def generalise_time(column: str, to: Duration, *, into: str | None = None) -> Transform:
    """A TIMESTAMP becomes the start of its "15m", "1h" or "1d", counted from 1970 in UTC.

    Over the column itself, unless `into` names a new one beside it. A watermark of the column does not
    carry over: define windows before.
    """
    seconds = parse_positive(to, "step of a generalised time", "no time could be told")
    step = max(1, round(seconds * 1e6))

    def coarsen(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        micros = time_of(rows, column, "generalise_time")
        target = replacing(rows, column, into, "generalise_time")
        return rows.withColumn(target, F.timestamp_micros(micros - F.pmod(micros, F.lit(step))))

    return coarsen


def generalise_place(column: str, places: Mapping[str, str], *, into: str | None = None) -> Transform:
    """A place becomes the coarser one that `places` has for it; one that is not there becomes null.

    Over the column itself, unless `into` names a new one beside it. The mapping is sent to each JVM once.
    """
    _check_places(places)
    lines = [f"{fine}\t{coarse}" for fine, coarse in sorted(places.items())]

    def coarsen(rows: DataFrame) -> DataFrame:
        session = rows.sparkSession
        fine = existing(rows, column, "generalise_place").cast("string")
        target = replacing(rows, column, into, "generalise_place")
        lookup = jvm(session).penstock.Lookup(once_per_jvm(session, "lookup", lines))
        return rows.withColumn(target, called(session, lookup, "STRING", fine))

    return coarsen


def _check_places(places: Mapping[str, str]) -> None:
    if not places:
        raise ColumnError(
            "generalise_place: places must not be empty, got none: every place would become null"
        )
    for fine, coarse in places.items():
        if not isinstance(fine, str) or not isinstance(coarse, str):
            raise ColumnError(
                f"generalise_place: places must be text to text, got {fine!r} to {coarse!r}: "
                "it could not be looked up"
            )
        if "\n" in fine + coarse or "\t" in fine:
            raise ColumnError(
                f"generalise_place: places must have no line break, and fine ones no tab, got {fine!r} to "
                f"{coarse!r}: another could be taken for it"
            )
