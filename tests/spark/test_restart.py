"""An orderly stop in the middle, and what the next engine makes of it."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import (
    AGGREGATES,
    BEGIN,
    Kept,
    Windows,
    folder_rows,
    from_spool,
    reading,
    readings,
    table,
    window_rows,
)

from penstock import Pipeline, Spool, sinks, sources
from penstock.queues.errors import SpoolInUse

pytestmark = pytest.mark.spark
ROWS = readings(300, seconds=60)


def windowed(source: Spool, folder: Path) -> Pipeline:
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).window(
        "w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES
    ).sink("out", sinks.Parquet(folder))
    return pipeline


def test_windows_stay_exact_over_orderly_stops(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, folder = spool(), tmp_path / "out"
    for start in range(0, 300, 100):
        runs = engine(consumption="at-most-30")
        runs.submit(windowed(source, folder))
        source.append(table(ROWS[start : start + 100]))
        eventually(lambda runs=runs: runs.stages()[0].figures.total_turns >= 1)  # type: ignore[misc]
        runs.stop()
    last = engine()
    last.submit(windowed(source, folder))
    last.drain()
    assert window_rows(folder_rows(folder, "n")) == Windows(5).expected(ROWS)


def test_an_engine_on_a_copy_of_the_state_goes_on_where_the_copy_was_made(
    engine: EngineFactory, state: Path, tmp_path: Path
) -> None:
    """The steps of docs/operations.md, with a window open and rows that wait."""
    folder = tmp_path / "out"

    def pipeline() -> Pipeline:
        made = Pipeline("p")
        rows = made.source("readings", sources.Replay(table(ROWS), 300, loop=False))
        rows.window("w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES).sink(
            "out", sinks.Parquet(folder)
        )
        return made

    first = engine(consumption="at-most-30")
    first.submit(pipeline())
    eventually(lambda: bool(folder_rows(folder, "n")))
    first.stop()
    assert 0 < len(folder_rows(folder, "n")) < len(Windows(5).expected(ROWS))
    copy = shutil.copytree(state, tmp_path / "copy", symlinks=True)
    shutil.rmtree(state)
    last = engine(copy)
    last.submit(pipeline())
    last.drain()
    assert window_rows(folder_rows(folder, "n")) == Windows(5).expected(ROWS)


def test_an_engine_that_stops_at_once_changes_nothing(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, folder = spool(), tmp_path / "out"
    first = engine()
    first.submit(windowed(source, folder))
    source.append(table(ROWS[:200]))
    first.drain()
    first.stop()
    before = folder_rows(folder, "n")
    assert window_rows(before) == Windows(5).expected(ROWS[:200])
    for _ in range(2):
        idle = engine()
        idle.submit(windowed(source, folder))
        idle.drain()
        idle.stop()
        assert folder_rows(folder, "n") == before
    last = engine()
    last.submit(windowed(source, folder))
    source.append(table(ROWS[200:]))
    last.drain()
    assert window_rows(folder_rows(folder, "n")) == Windows(5).expected(ROWS)


def test_windows_that_waited_for_a_turn_without_rows_come_out_after_a_restart(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    """Stopped before the flush that the first turn of a query needs: no further row may be needed."""
    source, folder = spool(), tmp_path / "out"
    first = engine(slots=1)
    pipeline = windowed(source, folder)
    # Before the stage is there: it does not start without rows, and its first turn is the query's first.
    source.append(table([reading(1, 1.0), reading(2, 12.0)]))
    first.on_turn(lambda record: setattr(first._pipelines["p"].stages[0], "paused", True))
    first.submit(pipeline)
    eventually(lambda: first.stages()[0].figures.total_turns == 1)
    assert folder_rows(folder, "n") == []
    first.stop()
    second = engine()
    second.submit(windowed(source, folder))
    eventually(lambda: window_rows(folder_rows(folder, "n")) == [(BEGIN, "a", 1, 1.0)])
    second.drain()
    assert window_rows(folder_rows(folder, "n")) == [(BEGIN, "a", 1, 1.0)]


def test_direct_stages_that_share_a_source_lose_nothing_when_one_lags_behind(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source = spool()

    def declared() -> Pipeline:
        pipeline = Pipeline("p")
        stream = pipeline.source("readings", from_spool(source))
        stream.operator("slow", lambda frame: frame.select("id")).sink(
            "slow out", sinks.Parquet(tmp_path / "slow")
        )
        stream.operator("fast", lambda frame: frame.select("id")).sink(
            "fast out", sinks.Parquet(tmp_path / "fast")
        )
        return pipeline

    first = engine()
    running = first.submit(declared())
    [slow] = [stage for stage in running.stages if stage.name == "p.slow"]
    slow.paused = True
    for start in range(0, 300, 50):
        source.append(table(ROWS[start : start + 50]))
    eventually(lambda: len(folder_rows(tmp_path / "fast")) == 300)
    assert folder_rows(tmp_path / "slow") == []
    first.stop()
    second = engine()
    second.submit(declared())
    second.drain()
    assert [row["id"] for row in folder_rows(tmp_path / "slow")] == list(range(300))
    assert [row["id"] for row in folder_rows(tmp_path / "fast")] == list(range(300))


def test_a_replay_goes_on_with_the_row_after_the_last_one(engine: EngineFactory, tmp_path: Path) -> None:
    done = 0
    for _ in range(3):
        pipeline = Pipeline("p")
        trace = sources.Replay(table(ROWS), rows_per_second=400)
        pipeline.source("trace", trace).sink("out", sinks.Parquet(tmp_path / "out"))
        runs = engine()
        runs.submit(pipeline)
        eventually(lambda done=done: len(folder_rows(tmp_path / "out")) >= done + 80)  # type: ignore[misc]
        runs.stop()
        done = len(folder_rows(tmp_path / "out"))
    ids = Counter(row["id"] for row in folder_rows(tmp_path / "out"))
    assert ids == Counter(number % 300 for number in range(done))


def test_a_state_directory_belongs_to_one_engine_at_a_time(engine: EngineFactory, state: Path) -> None:
    first = engine()
    with pytest.raises(SpoolInUse):
        engine()
    first.stop()
    engine()


def test_an_engine_without_a_state_directory_leaves_nothing(spark: object, spool: SpoolFactory) -> None:
    from penstock import Engine

    source, kept = spool(), Kept()
    with Engine(spark, slots=2) as runs:  # type: ignore[arg-type]
        pipeline = Pipeline("p")
        pipeline.source("readings", from_spool(source)).sink("out", kept.sink)
        runs.submit(pipeline)
        source.append(table(ROWS))
        runs.drain()
        folder = runs.state
        assert folder.exists()
    assert not folder.exists()
    assert kept.column("id") == list(range(300))


def test_an_engine_stops_though_a_spool_it_reads_was_closed_before(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, other, kept, runs = spool(), spool("other"), Kept(), engine()
    for name, each in (("one", source), ("two", other)):
        pipeline = Pipeline(name)
        pipeline.source("readings", from_spool(each)).sink("out", kept.sink)
        runs.submit(pipeline)
    source.close()
    runs.stop()
    assert set(runs.pipelines.values()) == {"stopped"}
    engine()
