"""Rows for tests, what must come of them (computed without Spark), and a sink that keeps what it gets."""

from __future__ import annotations

import json
import math
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock import Spool, sinks, sources
from penstock.measure.turns import TurnRecord

Row = dict[str, Any]
BEGIN = 1_700_000_000
SCHEMA = "id BIGINT, sensor STRING, value DOUBLE, ts TIMESTAMP"
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("sensor", pa.string()),
        ("value", pa.float64()),
        ("ts", pa.timestamp("us", "UTC")),
    ]
)


def at(seconds: float) -> datetime:
    """That many seconds after the tests' beginning of time."""
    return datetime.fromtimestamp(BEGIN, UTC) + (
        datetime.fromtimestamp(round(seconds * 1e6) / 1e6, UTC) - datetime.fromtimestamp(0, UTC)
    )


def reading(id: int, seconds: float, sensor: str = "a", value: float = 1.0) -> Row:
    return {"id": id, "sensor": sensor, "value": value, "ts": at(seconds)}


def readings(count: int, *, seconds: float, seed: int = 1, disorder: float = 0.0) -> list[Row]:
    """`count` rows over so many seconds; each is at most `disorder` seconds behind an earlier one."""
    chance = random.Random(seed)
    found = []
    for id in range(count):
        moment = round(id * seconds / count - chance.random() * disorder + disorder, 3)
        found.append(reading(id, moment, chance.choice("abc"), float(chance.randrange(100))))
    return found


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ARROW)


def cuts(rows: Sequence[Row], seed: int, most: int = 60) -> Iterable[pa.Table]:
    """The rows, in order, in segments of random sizes."""
    chance = random.Random(seed)
    start = 0
    while start < len(rows):
        size = chance.randint(1, most)
        yield table(rows[start : start + size])
        start += size


def from_spool(spool: Spool) -> sources.FromSpool:
    return sources.FromSpool(spool, SCHEMA)


@dataclass(frozen=True)
class Windows:
    """A window aggregation as a test expects it: size and slide in seconds, how late rows may be."""

    size: int
    slide: int = 0
    late: float = 0.0

    def starts(self, row: Row) -> list[int]:
        second = row["ts"].timestamp()
        slide = self.slide or self.size
        last = math.floor(second / slide) * slide
        return [start for start in range(last, last - self.size, -slide) if start + self.size > second]

    def expected(
        self, rows: Sequence[Row], frontier: float | None = None
    ) -> list[tuple[int, str, int, float]]:
        """(start, sensor, rows, sum of values) of every window that the frontier has closed."""
        reached = max(row["ts"].timestamp() for row in rows) - self.late if frontier is None else frontier
        sums: dict[tuple[int, str], list[float]] = defaultdict(list)
        for row in rows:
            for start in self.starts(row):
                sums[start, row["sensor"]].append(row["value"])
        closed = {key: values for key, values in sums.items() if key[0] + self.size <= round(reached, 6)}
        return sorted((*key, len(values), sum(values)) for key, values in closed.items())


AGGREGATES = ("count(*) as n", "sum(value) as total")


def window_rows(rows: Iterable[Row]) -> list[tuple[int, str, int, float]]:
    """Results of a window with AGGREGATES by sensor, in the form of Windows.expected."""
    return sorted(
        (int(row["window"]["start"].timestamp()), row["sensor"], row["n"], row["total"]) for row in rows
    )


class Kept:
    """A callback sink that keeps the rows of every turn."""

    def __init__(self) -> None:
        self.turns: list[list[Row]] = []

    def __call__(self, table: pa.Table, batch: int) -> None:
        self.turns.append(table.to_pylist())

    @property
    def sink(self) -> sinks.Callback:
        return sinks.Callback(self)

    @property
    def rows(self) -> list[Row]:
        return [row for turn in tuple(self.turns) for row in turn]

    def column(self, name: str) -> list[Any]:
        return sorted(row[name] for row in self.rows)


class Turns:
    """A listener that keeps turn records."""

    def __init__(self) -> None:
        self._records: list[TurnRecord] = []
        self._lock = threading.Lock()

    def __call__(self, record: TurnRecord) -> None:
        with self._lock:
            self._records.append(record)

    def of(self, stage: str) -> list[TurnRecord]:
        with self._lock:
            return [record for record in self._records if record.stage == stage]


def folder_rows(folder: Path, order: str = "id") -> list[Row]:
    """The rows of a Parquet sink."""
    files = sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    return sorted(rows, key=lambda row: row[order])


def json_rows(folder: Path) -> list[Row]:
    """The rows of a JSON-lines sink."""
    files = sorted(path for path in folder.glob("*.jsonl") if not path.name.startswith("."))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def spool_rows(spool: Spool) -> list[Row]:
    """All rows published in a spool."""
    files = [spool.path / name for segment in spool.segments for name in segment.files]
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def dead_letters(state: Path, pipeline: str, operator: str) -> list[Row]:
    """What an operator put aside; the engine that owns the state must be stopped."""
    with Spool(state / pipeline / "queues" / f"{operator}.dead") as spool:
        return sorted(spool_rows(spool), key=lambda row: str(row["raw"]))


def raises_when(flag: Path) -> Callable[[Any], Any]:
    """A Python UDF that gives its number back, or raises as long as the flag file is there."""
    from pyspark.sql import functions as F

    path = str(flag)

    def check(number: int) -> int:
        import os

        if os.path.exists(path):
            raise ValueError(f"the flag is up at row {number}")
        return number

    return F.udf(check, "bigint")
