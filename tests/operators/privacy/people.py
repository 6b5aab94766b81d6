"""Rows about people for the privacy operators' tests: who was where, when, and a value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock import Spool, sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
SCHEMA = "subject STRING, place STRING, value DOUBLE, at TIMESTAMP"
ARROW = pa.schema(
    [
        ("subject", pa.string()),
        ("place", pa.string()),
        ("value", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def seen(
    subject: str | None, place: str | None = "hall", seconds: float | None = 0.0, value: float | None = 1.0
) -> Row:
    moment = None if seconds is None else at(seconds)
    return {"subject": subject, "place": place, "value": value, "at": moment}


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ARROW)


def frame(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    return spark.createDataFrame(table(rows))


def written(folder: Path) -> list[Row]:
    """The rows of a Parquet sink."""
    files = [path for path in folder.glob("*.parquet") if not path.name.startswith(".")]
    return [row for file in sorted(files) for row in pq.read_table(file).to_pylist()]


def from_spool(spool: Spool) -> sources.FromSpool:
    return sources.FromSpool(spool, SCHEMA)
