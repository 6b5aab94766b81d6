"""Windows over many sources: how far all of them have come decides, not how far the first one has."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import (
    AGGREGATES,
    SCHEMA,
    Kept,
    Row,
    Turns,
    Windows,
    reading,
    table,
    window_rows,
)

from penstock import Pipeline, Spool, sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

SOURCES = 64
WINDOW = Windows(5)


def windowed(source: Spool, kept: Kept, *, count: int = 0, idle_seconds: float = 60.0) -> Pipeline:
    pipeline = Pipeline("p")
    spec = sources.FromSpool(source, SCHEMA, sources=count, idle_seconds=idle_seconds)
    rows = pipeline.source("readings", spec)
    rows.window("w", on="ts", size=5.0, by="sensor", aggregate=AGGREGATES).sink("out", kept.sink)
    return pipeline


def closing(number: int) -> Row:
    """A row long after all others, which completes every window before it."""
    return reading(100_000 + number, 1000.0)


@pytest.mark.parametrize("together", [False, True])
def test_sources_of_unequal_speed_lose_no_row_that_is_in_time(
    engine: EngineFactory, spool: SpoolFactory, together: bool
) -> None:
    source, kept, runs, chance = spool(), Kept(), engine(), random.Random(5)
    runs.submit(windowed(source, kept, count=SOURCES))
    waiting = {
        f"s{number}": [reading(number * 100 + k, k + chance.random(), "abc"[k % 3]) for k in range(30)]
        for number in range(SOURCES)
    }
    rows = [row for each in waiting.values() for row in each]
    speeds = {name: chance.choice((1, 2, 5, 10)) for name in waiting}
    while any(waiting.values()):
        taken = {name: left[: speeds[name]] for name, left in waiting.items()}
        waiting = {name: left[speeds[name] :] for name, left in waiting.items()}
        if together:
            source.append_together({name: table(each) for name, each in taken.items()})
        else:
            for name, each in taken.items():
                source.append(table(each), producer=name)
    runs.drain()
    for number, name in enumerate(waiting):
        source.append(table([closing(number)]), producer=name)
    runs.drain()
    assert runs.stages()[0].late_rows == 0
    assert window_rows(kept.rows) == WINDOW.expected([*rows, closing(0)])


def test_a_fast_source_closes_no_window_that_a_slow_one_still_fills(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    runs.submit(windowed(source, kept, count=2))
    source.append(table([reading(1, 1.0)]), producer="slow")
    source.append(table([reading(2, 1.0), reading(3, 60.0)]), producer="fast")
    runs.drain()
    assert kept.rows == []
    source.append(table([reading(4, 4.0), reading(5, 5.0)]), producer="slow")
    runs.drain()
    # 0-5 is complete at both; of 5-10 the slow one has a row, and may have more.
    taken = [reading(1, 1.0), reading(2, 1.0), reading(4, 4.0), reading(5, 5.0)]
    assert window_rows(kept.rows) == WINDOW.expected(taken)
    assert runs.stages()[0].late_rows == 0


def test_a_source_that_falls_silent_is_waited_for_only_so_long(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    runs.submit(windowed(source, kept, idle_seconds=1.5))
    source.append(table([reading(1, 1.0)]), producer="silent")
    source.append(table([reading(2, 2.0), reading(3, 60.0)]), producer="goes on")
    eventually(lambda: len(kept.rows) == 1, 20)
    assert window_rows(kept.rows) == WINDOW.expected([reading(1, 1.0), reading(2, 2.0), reading(3, 60.0)])


def test_windows_of_a_source_that_stays_silent_leave_after_a_restart_though_no_row_comes(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, kept = spool(), Kept()
    with engine(state=tmp_path / "state") as runs:
        runs.submit(windowed(source, kept))
        for number in range(3):
            source.append(table([reading(number, 1.0 + number / 10)]), producer="silent")
            source.append(table([reading(10 + number, 2.0)]), producer="goes on")
            runs.drain()
        source.append(table([reading(3, 60.0)]), producer="goes on")
        runs.drain()
    assert kept.rows == []
    runs = engine(state=tmp_path / "state")
    runs.submit(windowed(source, kept, idle_seconds=1.0))
    eventually(lambda: len(kept.rows) == 1, 20)
    early = [reading(number, 1.0 + number / 10) for number in range(3)]
    taken = [*early, *(reading(10 + number, 2.0) for number in range(3)), reading(3, 60.0)]
    assert window_rows(kept.rows) == WINDOW.expected(taken)


def test_how_far_sources_have_come_is_known_after_a_restart(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, kept = spool(), Kept()
    with engine(state=tmp_path / "state") as runs:
        runs.submit(windowed(source, kept))
        source.append(table([reading(1, 1.0)]), producer="slow")
        source.append(table([reading(2, 1.0)]), producer="fast")
        runs.drain()
    with engine(state=tmp_path / "state") as runs:
        runs.submit(windowed(source, kept))
        source.append(table([reading(3, 60.0)]), producer="fast")
        runs.drain()
        source.append(table([reading(4, 4.0)]), producer="slow")
        source.append(table([reading(5, 60.0)]), producer="slow")
        runs.drain()
    expected = WINDOW.expected([reading(n, s) for n, s in ((1, 1.0), (2, 1.0), (4, 4.0), (5, 60.0))])
    assert window_rows(kept.rows) == expected


def test_a_window_over_windows_leaves_as_soon_as_they_do(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, turns, runs = spool(), Kept(), Turns(), engine()
    pipeline = Pipeline("p")
    per_sensor = pipeline.source("readings", sources.FromSpool(source, SCHEMA)).window(
        "w", on="ts", size=5.0, by="sensor", aggregate="sum(value) as value"
    )
    flat = per_sensor.operator("flat", lambda rows: rows.selectExpr("window_time(window) as at", "value"))
    flat.window("all", on="at", size=5.0, aggregate="sum(value) as total").sink("out", kept.sink)
    runs.on_turn(turns)
    runs.submit(pipeline)
    for moment in range(0, 40, 2):
        source.append(table([reading(moment, moment + 0.5, "abc"[moment % 3])]))
        runs.drain()
    ends = [(row["window"]["end"].timestamp() % 100, row["total"]) for row in kept.rows]
    begin = ends[0][0] - 5
    # The row at 36.5 has closed 30-35; nothing waits for the next window to bring it out.
    assert [end - begin for end, _ in ends] == [5, 10, 15, 20, 25, 30, 35]
    assert [total for _, total in ends] == [3, 2, 3, 2, 3, 2, 3]
    # Once its query runs, each result takes one turn of each of the two stages.
    results = [turn for turn in turns.of("p.all") if turn.rows_out]
    assert len(results) == 7
    assert all(turn.rows_in > 0 for turn in results[1:])


def test_a_union_in_the_stage_of_a_window_waits_for_both_its_queues(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    one, other, kept, runs = spool("one"), spool("other"), Kept(), engine()
    pipeline = Pipeline("p")
    first = pipeline.source("one", sources.FromSpool(one, SCHEMA, idle_seconds=60.0))
    second = pipeline.source("other", sources.FromSpool(other, SCHEMA, idle_seconds=60.0))
    both = first.union("both", second)
    both.window("w", on="ts", size=5.0, by="sensor", aggregate=AGGREGATES).sink("out", kept.sink)
    runs.submit(pipeline)
    one.append(table([reading(1, 1.0), reading(2, 60.0)]))
    runs.drain()
    assert kept.rows == []
    other.append(table([reading(3, 2.0), reading(4, 7.0)]))
    runs.drain()
    assert window_rows(kept.rows) == WINDOW.expected([reading(1, 1.0), reading(3, 2.0), reading(4, 7.0)])
    assert all(report.late_rows == 0 for report in runs.stages())


def test_a_pause_is_no_silence_of_the_sources(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, runs = spool(), Kept(), engine()
    runs.submit(windowed(source, kept, idle_seconds=2.0))
    source.append(table([reading(1, 1.0)]), producer="slow")
    source.append(table([reading(2, 2.0), reading(3, 60.0)]), producer="fast")
    runs.drain()
    runs.pause("p")
    paused = time.monotonic()
    eventually(lambda: time.monotonic() > paused + 4.0)
    source.append(table([reading(4, 4.0), reading(5, 61.0)]), producer="slow")
    source.append(table([reading(6, 61.0)]), producer="fast")
    runs.resume("p")
    runs.drain()
    taken = [reading(n, s) for n, s in ((1, 1.0), (2, 2.0), (4, 4.0), (3, 60.0), (5, 61.0))]
    assert window_rows(kept.rows) == WINDOW.expected(taken)


def test_a_column_may_be_named_in_another_case(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    rows = pipeline.source("readings", sources.FromSpool(source, SCHEMA))

    def counted(frame: DataFrame) -> DataFrame:
        window = F.window("TS", "5 seconds")
        return frame.withWatermark("TS", "0 seconds").groupBy(window).agg(F.count("*").alias("n"))

    rows.operator("w", counted, stateful=True, watermark="ts").sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(table([reading(1, 1.0), reading(2, 6.0)]))
    runs.drain()
    assert [row["n"] for row in kept.rows] == [1]


def test_rows_without_duplicates_are_forgotten_after_the_lateness(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    rows = pipeline.source("readings", sources.FromSpool(source, SCHEMA))

    def once(frame: DataFrame) -> DataFrame:
        return frame.withWatermark("ts", "5 seconds").dropDuplicatesWithinWatermark(["sensor"])

    rows.operator("once", once, stateful=True, watermark="ts").sink("out", kept.sink)
    runs.submit(pipeline)
    for number, moment in enumerate((1.0, 2.0, 30.0, 31.0, 60.0)):
        source.append(table([reading(number, moment)]))
        runs.drain()
    # As Spark has it: the row at 30 comes before what it lets Spark forget.
    assert kept.column("id") == [0, 3]
