"""A crash at every moment that matters: no row is lost or doubled at an exactly-once sink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spark.conftest import EngineFactory
from tests.spark.streams import (
    AGGREGATES,
    Row,
    Windows,
    dead_letters,
    folder_rows,
    from_spool,
    json_rows,
    reading,
    readings,
    spool_rows,
    table,
    window_rows,
)
from tests.spark.wreckage import Wreckage

from penstock import Pipeline, Spool, sinks
from penstock.queues.cursor import Consumer
from penstock.queues.journal import Journal
from penstock.spark.ends import FolderEnd, QueueEnd
from penstock.spark.planned_query import PlannedBatch

pytestmark = pytest.mark.spark

ROWS = readings(60, seconds=30)
LATE = reading(1000, 0.5)
MORE = [reading(2000 + number, 30.0 + number) for number in range(8)]
World = Path
# Segments come one after the other: the late row finds its window closed.
CONSUMPTION = "at-most-25"


def direct(source: Spool, world: World, out: Spool) -> Pipeline:
    """A fan-out to three sinks, each exactly once, by way of a queue."""
    pipeline = Pipeline("p")
    same = pipeline.source("readings", from_spool(source)).operator(
        "same", lambda frame: frame.selectExpr("id", "value + 1 as value")
    )
    same.sink("parquet", sinks.Parquet(world / "parquet"))
    same.operator("even", lambda frame: frame.filter("id % 2 = 0")).sink(
        "json", sinks.JsonLines(world / "json")
    )
    same.operator("odd", lambda frame: frame.filter("id % 2 = 1")).sink("spool", sinks.ToSpool(out))
    return pipeline


def check_direct(world: World, out: Spool, rows: list[Row]) -> None:
    expected = [{"id": row["id"], "value": row["value"] + 1} for row in rows]
    assert folder_rows(world / "parquet") == expected
    assert by_id(json_rows(world / "json")) == [row for row in expected if row["id"] % 2 == 0]
    assert by_id(spool_rows(out)) == [row for row in expected if row["id"] % 2 == 1]


def by_id(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["id"])


def held(source: Spool, world: World, out: Spool) -> Pipeline:
    """A stage with state between two without."""
    pipeline = Pipeline("p", fuse=False)
    pipeline.source("readings", from_spool(source)).operator(
        "same", lambda frame: frame.selectExpr("id", "sensor", "value", "ts")
    ).window("w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES).operator(
        "some", lambda frame: frame.filter("n > 0")
    ).sink("out", sinks.Parquet(world / "parquet"))
    return pipeline


def check_held(world: World, out: Spool, rows: list[Row]) -> None:
    in_time = [row for row in rows if row["id"] != LATE["id"]]
    assert window_rows(folder_rows(world / "parquet", "n")) == Windows(5).expected(in_time)
    letters = dead_letters(world / "state", "p", "w")
    assert len(letters) == (1 if LATE in rows else 0)


class Crashed:
    """One run of a pipeline, cut off at many moments, and what a second engine makes of each of them."""

    def __init__(self, engine: EngineFactory, tmp_path: Path, declare: Callable[..., Pipeline]):
        self._engine = engine
        self._declare = declare
        self.world = tmp_path / "world"
        self.wreckage = Wreckage(self.world, tmp_path / "wreckage")

    def run(self, segments: list[list[Row]]) -> None:
        """One turn at a time, so that nothing else writes while a copy is taken."""
        with Spool(self.world / "input") as source, Spool(self.world / "spool") as out:
            runs = self._engine(self.world / "state", slots=1, consumption=CONSUMPTION)
            runs.submit(self._declare(source, self.world, out))
            for rows in segments:
                source.append(table(rows))
                runs.drain()
            self.wreckage.stop()
            runs.stop()

    def recover(self, number: int, segments: list[list[Row]], check: Callable[..., None]) -> None:
        """A new engine in the world as it was at that moment, with the segments that had not come yet."""
        self.wreckage.put_back(number)
        with Spool(self.world / "input") as source, Spool(self.world / "spool") as out:
            runs = self._engine(self.world / "state", consumption=CONSUMPTION)
            runs.submit(self._declare(source, self.world, out))
            runs.drain()
            came = source.last_batch("append")
            for rows in segments[0 if came is None else came + 1 :]:
                source.append(table(rows))
                runs.drain()
            runs.stop()
            check(self.world, out, [row for segment in segments for row in segment])


SEGMENTS = [ROWS[:20], ROWS[20:40], ROWS[40:50], [LATE, *ROWS[50:]]]
POINTS: list[tuple[type, str]] = [
    (Journal, "write"),
    (FolderEnd, "show"),
    (QueueEnd, "show"),
    (Consumer, "release"),
]
PLANNED: list[tuple[type, str]] = [(PlannedBatch, "write"), (PlannedBatch, "commit")]


@pytest.mark.parametrize(
    ("declare", "check", "segments", "points"),
    [
        (direct, check_direct, [ROWS[:40], ROWS[40:]], POINTS),
        (held, check_held, SEGMENTS, [*POINTS, *PLANNED]),
    ],
    ids=["direct", "held"],
)
def test_no_row_is_lost_or_doubled_whenever_the_driver_is_killed(
    engine: EngineFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    declare: Callable[..., Pipeline],
    check: Callable[..., None],
    segments: list[list[Row]],
    points: list[tuple[type, str]],
) -> None:
    crashed = Crashed(engine, tmp_path, declare)
    with monkeypatch.context() as patch:
        for owner, method in points:
            crashed.wreckage.around(patch, owner, method)
        crashed.run(segments)
    moments = crashed.wreckage.moments
    assert {moment.split(" ", 1)[1] for moment in moments} == {
        f"{owner.__name__}.{method}" for owner, method in points
    }
    for number in chosen(moments):
        try:
            crashed.recover(number, [*segments, MORE], check)
        except AssertionError as error:
            raise AssertionError(f"killed {moments[number]}, moment {number} of {len(moments)}") from error


def chosen(moments: list[str], most: int = 16) -> list[int]:
    """Some of the moments, of every kind, spread over the run; always the same ones."""
    kinds: dict[str, list[int]] = {}
    for number, moment in enumerate(moments):
        kinds.setdefault(moment, []).append(number)
    each = max(most // len(kinds), 1)
    picked: list[int] = []
    for place, numbers in enumerate(kinds.values()):
        step = max(len(numbers) // each, 1)
        picked += numbers[place % step :: step][:each]
    return sorted(picked)
