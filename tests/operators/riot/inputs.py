"""Random input for the operators, and how their results are compared with the reference."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.operators.riot import QUANTITIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
ARRIVED = datetime(2024, 1, 1, tzinfo=UTC)
LINES = pa.schema([("value", pa.string()), ("arrived", pa.timestamp("us", "UTC")), ("msgid", pa.int64())])
OBSERVATIONS = pa.schema(
    [
        ("msgid", pa.int64()),
        ("arrived", pa.timestamp("us", "UTC")),
        ("time", pa.int64()),
        ("longitude", pa.float64()),
        ("latitude", pa.float64()),
        ("sensor", pa.string()),
        ("name", pa.string()),
        ("value", pa.float64()),
        ("text", pa.string()),
    ]
)
OBSERVATION_DDL = (
    "msgid BIGINT, arrived TIMESTAMP, time BIGINT, longitude DOUBLE, latitude DOUBLE, "
    "sensor STRING, name STRING, value DOUBLE, text STRING"
)


def line(
    sensor: str, values: Sequence[float], *, time: int = 1000, shuffle: random.Random | None = None
) -> str:
    """One line of SenML; shuffled, its fields stand in any order, their numbers as strings or numbers."""
    numbers = dict(zip(("longitude", "latitude", *QUANTITIES), (6.5, 46.25, *values), strict=True))
    entries: list[Row] = [{"u": "string", "n": "source", "sv": sensor}]
    for name, number in numbers.items():
        said = number if shuffle and shuffle.random() < 0.5 else str(number)
        entries.append({"v": said, "u": "per", "n": name})
    if shuffle:
        shuffle.shuffle(entries)
    return f"{time}," + json.dumps({"e": entries, "bt": time})


def line_table(lines: Iterable[str | None], first: int = 0) -> pa.Table:
    texts = list(lines)
    rows = [{"value": text, "arrived": ARRIVED, "msgid": first + at} for at, text in enumerate(texts)]
    return pa.Table.from_pylist(rows, schema=LINES)


def readings(chance: random.Random) -> list[float]:
    """Five readings, some of them outside of the valid ranges."""
    limits = ((-9.0, 41.0), (12.0, 99.0), (0.0, 9000.0), (-1.0, 5000.0), (4.0, 60.0))
    return [round(chance.uniform(low, high), 2) for low, high in limits]


def observed(
    chance: random.Random, count: int, *, nulls: float = 0.0, values: int = 14, sensors: int = 3
) -> list[Row]:
    """Observations of few sensors and two quantities, whose values repeat; some are null."""
    found = []
    for msgid in range(count):
        value = None if chance.random() < nulls else float(chance.randrange(values)) / 4
        found.append(
            {
                "msgid": msgid,
                "arrived": ARRIVED,
                "time": 1000,
                "longitude": 6.5,
                "latitude": 46.25,
                "sensor": f"s{chance.randrange(sensors)}",
                "name": chance.choice(QUANTITIES[:2]),
                "value": value,
                "text": None,
            }
        )
    return found


def frame(spark: SparkSession, rows: Sequence[Row], schema: pa.Schema = OBSERVATIONS) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=schema))


def rows_of(made: DataFrame, *columns: str, order: Sequence[str] = ("msgid",)) -> list[Row]:
    """The columns named, in order."""
    found = made.select(*columns).toArrow().to_pylist()
    return sorted(found, key=lambda row: tuple(str(row[each]).zfill(9) for each in order))


def chosen(rows: Iterable[Row], *columns: str, order: Sequence[str] = ("msgid",)) -> list[Row]:
    """The same of reference rows."""
    found = [{column: row[column] for column in columns} for row in rows]
    return sorted(found, key=lambda row: tuple(str(row[each]).zfill(9) for each in order))


def is_close(one: Any, other: Any, scale: float = 1.0) -> bool:
    """Equal, but for the last digits of numbers; those of a list may be off by as much as its greatest."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_close(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        greatest = max([1.0, *(abs(each) for each in other if isinstance(each, float))])
        return len(one) == len(other) and all(
            is_close(*pair, greatest) for pair in zip(one, other, strict=True)
        )
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9 * scale)
    return bool(one == other)


def assert_close(found: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(found) == len(expected)
    wrong = [pair for pair in zip(found, expected, strict=True) if not is_close(*pair)]
    assert wrong[:3] == []
