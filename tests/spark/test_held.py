from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import (
    AGGREGATES,
    BEGIN,
    Kept,
    Row,
    Turns,
    Windows,
    at,
    cuts,
    dead_letters,
    from_spool,
    reading,
    readings,
    table,
    window_rows,
)

from penstock import Engine, Pipeline, Spool
from penstock.scheduling import Grant
from penstock.spark.held import HeldStage

pytestmark = pytest.mark.spark


def windowed(name: str, source: Spool, windows: Windows, kept: Kept) -> Pipeline:
    pipeline = Pipeline(name)
    pipeline.source("readings", from_spool(source)).window(
        "w",
        on="ts",
        size=float(windows.size),
        slide=float(windows.slide) if windows.slide else None,
        late=windows.late,
        by="sensor",
        aggregate=AGGREGATES,
    ).sink("out", kept.sink)
    return pipeline


def later_turns(turns: Turns) -> list[tuple[int, int]]:
    """(rows in, rows out) of each turn after the query's first, which may need one without rows behind it."""
    records = [(record.rows_in, record.rows_out) for record in turns.of("p.w")][1:]
    return records[1:] if records[0][0] == 0 else records


@pytest.mark.parametrize("windows", [Windows(5), Windows(6, slide=2), Windows(4, late=2.0)], ids=str)
def test_windows_are_those_of_a_plain_computation(
    engine: EngineFactory, spool: SpoolFactory, windows: Windows
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    rows = readings(400, seconds=40, disorder=windows.late)
    runs.submit(windowed("p", source, windows, kept))
    for segment in cuts(rows, seed=3, most=200):
        source.append(segment)
    runs.drain()
    assert window_rows(kept.rows) == windows.expected(rows)
    assert [report.kind for report in runs.stages()] == ["held"]


@pytest.mark.parametrize(("seed", "consumption"), [(1, "at-most-37"), (2, "half"), (3, "at-most-101")])
def test_windows_are_exact_however_segments_and_turns_are_cut(
    engine: EngineFactory, spool: SpoolFactory, seed: int, consumption: str
) -> None:
    source, kept, runs = spool(), Kept(), engine(consumption=consumption)
    windows = Windows(6, slide=3, late=1.5)
    rows = readings(300, seconds=60, seed=seed, disorder=1.5)
    runs.submit(windowed("p", source, windows, kept))
    for segment in cuts(rows, seed):
        source.append(segment)
    runs.drain()
    assert window_rows(kept.rows) == windows.expected(rows)
    assert runs.stages()[0].late_rows == 0


def test_a_turn_takes_no_more_rows_than_granted_unless_one_segment_has_more(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, turns, runs = spool(), Kept(), Turns(), engine(consumption="at-most-25")
    rows = readings(70, seconds=60)
    for begin, end in ((0, 10), (10, 20), (20, 30), (30, 70)):
        source.append(table(rows[begin:end]))
    runs.on_turn(turns)
    runs.submit(windowed("p", source, Windows(5), kept))
    runs.drain()
    assert [record.rows_in for record in turns.of("p.w") if record.rows_in] == [20, 10, 40]


def paused_with(rows: list[Row], runs: Engine, source: Spool, kept: Kept) -> HeldStage:
    """A windowed stage that has these rows, and may not run yet."""
    [stage] = runs.submit(windowed("p", source, Windows(5), kept)).stages
    assert isinstance(stage, HeldStage)
    eventually(lambda: stage.journal.entry.batch == 0)
    stage.paused = True
    source.append(table(rows))
    return stage


def test_rows_that_are_only_counted_hold_the_frontier_back_too(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    kept, runs, rows = Kept(), engine(), readings(100, seconds=20)
    stage = paused_with(rows, runs, spool(), kept)
    # As while no slot is free: a source whose rows wait must not count as silent at the end of the turn.
    assert stage.count(stage.now) == stage.line.rows_known == 100
    stage.paused = False
    stage.place.dispatcher.changed(stage)
    runs.drain()
    assert window_rows(kept.rows) == Windows(5).expected(rows)


def test_rows_that_were_granted_before_a_stop_wait_since_one_moment(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    kept, runs, rows = Kept(), engine(), readings(100, seconds=20)
    stage = paused_with(rows, runs, spool(), kept)
    # As a stop between a grant and its batch leaves it.
    stage.line.took(slices := stage.inputs.take(len(rows)), stage.now)
    stage._ledger.add(slices)
    stage.paused = False
    views = [stage.view(stage.now + seconds) for seconds in (0.0, 40.0)]
    assert [each and each.ready_since for each in views] == [stage._recovered_at] * 2
    stage.place.dispatcher.changed(stage)
    runs.drain()
    assert window_rows(kept.rows) == Windows(5).expected(rows)


def test_a_new_stage_starts_before_its_first_rows_and_no_sink_hears_of_it(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, turns, runs = spool(), Kept(), Turns(), engine()
    runs.on_turn(turns)
    [stage] = runs.submit(windowed("p", source, Windows(10), kept)).stages
    eventually(lambda: stage.journal.entry.batch == 0)
    [started] = [each for each in runs.decisions("p.w") if isinstance(each, Grant)]
    assert started.rows == 0
    assert "its start" in started.reason
    rows = readings(100, seconds=40)
    source.append(table(rows))
    runs.drain()
    assert window_rows(kept.rows) == Windows(10).expected(rows)
    assert [record.rows_in for record in turns.of("p.w")] == [100]
    assert len(kept.turns) == 1


@pytest.mark.parametrize("rows_there", [False, True], ids=["no-rows", "rows"])
def test_a_start_that_was_broken_off_is_made_again_and_is_no_turn(
    monkeypatch: pytest.MonkeyPatch, engine: EngineFactory, spool: SpoolFactory, rows_there: bool
) -> None:
    source, kept, turns, rows = spool(), Kept(), Turns(), readings(100, seconds=40)
    with monkeypatch.context() as broken:
        broken.setattr(HeldStage, "_begin", lambda stage, adrift: 1 / 0)
        first = engine()
        [stage] = first.submit(windowed("p", source, Windows(10), kept)).stages
        eventually(lambda: first.pipelines["p"] == "failed")
        assert dict(stage.journal.entry.grants)
        first.stop()
    if rows_there:
        source.append(table(rows))
    second = engine()
    second.on_turn(turns)
    [stage] = second.submit(windowed("p", source, Windows(10), kept), resume=True).stages
    eventually(lambda: stage.journal.entry.batch >= 0)
    if not rows_there:
        source.append(table(rows))
    second.drain()
    assert window_rows(kept.rows) == Windows(10).expected(rows)
    assert [record.rows_in for record in turns.of("p.w")] == [100]


def test_a_stage_that_has_run_does_not_start_before_its_rows_again(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, first, rows = spool(), Kept(), engine(), readings(100, seconds=40)
    source.append(table(rows[:50]))
    first.submit(windowed("p", source, Windows(10), kept))
    first.drain()
    first.stop()
    second = engine()
    second.submit(windowed("p", source, Windows(10), kept))
    assert not [each for each in second.decisions("p.w") if isinstance(each, Grant)]
    source.append(table(rows[50:]))
    second.drain()
    assert window_rows(kept.rows) == Windows(10).expected(rows)


def test_a_window_leaves_with_the_turn_that_completes_it(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, turns, runs = spool(), Kept(), Turns(), engine()
    runs.submit(windowed("p", source, Windows(10), kept))
    runs.on_turn(turns)
    source.append(table([reading(1, 1.0), reading(2, 9.999)]))
    runs.drain()
    assert kept.rows == []
    source.append(table([reading(3, 10.0)]))
    runs.drain()
    assert window_rows(kept.rows) == [(BEGIN, "a", 2, 2.0)]
    source.append(table([reading(4, 19.0), reading(5, 34.0)]))
    runs.drain()
    assert window_rows(kept.rows) == [(BEGIN, "a", 2, 2.0), (BEGIN + 10, "a", 2, 2.0)]
    assert later_turns(turns) == [(1, 1), (2, 1)]


@pytest.mark.parametrize("late", [0.1, 0.3, 0.7, 1.1])
def test_a_window_leaves_in_one_turn_at_the_very_millisecond_its_lateness_ends(
    engine: EngineFactory, spool: SpoolFactory, late: float
) -> None:
    """The watermark is Spark's, in whole milliseconds: a fraction of a second must not round it down."""
    source, kept, turns, runs = spool(), Kept(), Turns(), engine()
    runs.submit(windowed("p", source, Windows(10, late=late), kept))
    runs.on_turn(turns)
    source.append(table([reading(1, 1.0)]))
    runs.drain()
    source.append(table([reading(2, 10 + late - 0.001)]))
    runs.drain()
    assert kept.rows == []
    source.append(table([reading(3, 10 + late)]))
    runs.drain()
    assert window_rows(kept.rows) == [(BEGIN, "a", 1, 1.0)]
    assert later_turns(turns) == [(1, 0), (1, 1)]


def test_the_first_turn_of_a_query_gives_the_windows_it_completes_too(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    rows = readings(100, seconds=50)
    source.append(table(rows))
    runs.submit(windowed("p", source, Windows(5), kept))
    runs.drain()
    assert window_rows(kept.rows) == Windows(5).expected(rows)


def test_rows_that_a_filter_drops_before_the_window_still_complete_it(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    rows = readings(200, seconds=40)
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator(
        "early", lambda frame: frame.filter(f"unix_seconds(ts) < {BEGIN + 31}")
    ).window("w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(table(rows))
    runs.drain()
    early = [row for row in rows if row["ts"] < at(31)]
    reached = max(row["ts"].timestamp() for row in rows)
    # The window from 30 to 35 has a row, and those at 35 and later have come, though none of them passes.
    assert window_rows(kept.rows) == Windows(5).expected(early, frontier=reached)
    assert window_rows(kept.rows)[-1][0] == BEGIN + 30


def test_windows_over_two_watermarks_come_out_without_more_data(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    left, right, kept, runs = spool("left"), spool("right"), Kept(), engine()

    def both(one: Any, other: Any) -> Any:
        from pyspark.sql import functions as F

        timed = one.withWatermark("ts", "1 second").unionByName(other.withWatermark("ts", "3 seconds"))
        sums = (F.count("*").alias("n"), F.sum("value").alias("total"))
        return timed.groupBy(F.window("ts", "5 seconds"), "sensor").agg(*sums)

    pipeline = Pipeline("p")
    streams = [pipeline.source(name, from_spool(each)) for name, each in (("l", left), ("r", right))]
    streams[0].join("both", streams[1], both, watermark="ts").sink("out", kept.sink)
    runs.submit(pipeline)
    ones, others = readings(150, seconds=44, seed=5), readings(150, seconds=38, seed=6)
    left.append(table(ones))
    right.append(table(others))
    runs.drain()
    frontier = min(
        max(row["ts"].timestamp() for row in ones) - 1, max(row["ts"].timestamp() for row in others) - 3
    )
    assert window_rows(kept.rows) == Windows(5).expected([*ones, *others], frontier)


def pairs(one: Any, other: Any) -> Any:
    from pyspark.sql import functions as F

    left = one.withWatermark("ts", "2 seconds").select("id", "sensor", "ts")
    right = other.withWatermark("ts", "2 seconds").select(
        F.col("id").alias("other"), F.col("sensor").alias("place"), F.col("ts").alias("at")
    )
    near = "sensor = place AND at BETWEEN ts - INTERVAL 1 SECOND AND ts + INTERVAL 1 SECOND"
    return left.join(right, F.expr(near)).select("id", "other")


@pytest.mark.parametrize("consumption", ["all", "at-most-40"])
def test_a_join_of_two_streams_finds_every_pair_once(
    engine: EngineFactory, spool: SpoolFactory, consumption: str
) -> None:
    left, right, kept = spool("left"), spool("right"), Kept()
    runs = engine(consumption=consumption)
    ones, others = readings(100, seconds=20, seed=7), readings(100, seconds=20, seed=8)
    pipeline = Pipeline("p")
    other = pipeline.source("right", from_spool(right))
    pipeline.source("left", from_spool(left)).join("near", other, pairs, watermark="ts").sink(
        "out", kept.sink
    )
    runs.submit(pipeline)
    # Side by side in event time, as two live sources are: neither is late for the other.
    for start in range(0, 100, 25):
        left.append(table(ones[start : start + 25]))
        right.append(table(others[start : start + 25]))
        runs.drain()
    second = timedelta(seconds=1)
    expected = sorted(
        (one["id"], other["id"])
        for one in ones
        for other in others
        if one["sensor"] == other["sensor"] and abs(one["ts"] - other["ts"]) <= second
    )
    assert len(expected) > 100
    assert sorted((row["id"], row["other"]) for row in kept.rows) == expected
    assert [report.kind for report in runs.stages()] == ["held"]


def test_late_rows_are_counted_and_kept_and_change_no_window(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    runs.submit(windowed("p", source, Windows(10), kept))
    source.append(table([reading(1, 2.0), reading(2, 12.0)]))
    runs.drain()
    # Three late rows of one window and key, one of another key, among rows that are in time.
    late = [reading(3, 1.0), reading(4, 3.0), reading(5, 5.0), reading(6, 9.5, sensor="b")]
    source.append(table([reading(7, 13.0), *late, reading(8, 11.0), reading(9, 25.0)]))
    runs.drain()
    assert window_rows(kept.rows) == [(BEGIN, "a", 1, 1.0), (BEGIN + 10, "a", 3, 3.0)]
    [report] = runs.stages()
    runs.stop()
    letters = dead_letters(state, "p", "w")
    assert [letter["dead_letter"] for letter in letters] == [
        f"late: ts is 2023-11-14 22:13:{second}, and its windows are closed"
        for second in ("21", "23", "25", "29.5")
    ]
    assert [sorted(row) for row in map(_parsed, letters)] == [["id", "sensor", "ts", "value"]] * 4
    assert [_parsed(letter)["id"] for letter in letters] == [3, 4, 5, 6]
    assert (report.late_rows, report.dead_rows) == (4, 4)


def test_a_row_late_for_one_of_its_windows_still_counts_in_the_other(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    runs.submit(windowed("p", source, Windows(10, slide=5), kept))
    source.append(table([reading(1, 7.0), reading(2, 12.0)]))
    runs.drain()
    # [0, 10) is closed, [5, 15) is open: the row at 8 belongs to both, the one at 4 to closed ones only.
    source.append(table([reading(3, 8.0), reading(4, 4.0), reading(5, 16.0)]))
    runs.drain()
    assert window_rows(kept.rows) == [(BEGIN, "a", 1, 1.0), (BEGIN + 5, "a", 3, 3.0)]
    [report] = runs.stages()
    runs.stop()
    assert [_parsed(letter)["id"] for letter in dead_letters(state, "p", "w")] == [4]
    assert (report.late_rows, report.dead_rows) == (1, 1)


def _parsed(letter: dict[str, Any]) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(letter["raw"])
    return found


def test_duplicates_are_dropped_across_turns(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, runs = spool(), Kept(), engine(consumption="at-most-30")
    rows = readings(100, seconds=20)
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator(
        "once",
        lambda frame: frame.withWatermark("ts", "1 minute").dropDuplicates(["id", "ts"]),
        stateful=True,
        watermark="ts",
    ).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(table(rows))
    source.append(table(rows[10:60]))
    source.append(table(rows[::3]))
    runs.drain()
    assert kept.column("id") == [row["id"] for row in rows]


def test_a_window_behind_a_direct_stage_and_a_stage_behind_a_window_agree_with_a_plain_computation(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine(consumption="at-most-50")
    rows = readings(200, seconds=40)
    pipeline = Pipeline("p", fuse=False)
    pipeline.source("readings", from_spool(source)).operator(
        "tenfold", lambda frame: frame.selectExpr("id", "sensor", "value * 10 as value", "ts")
    ).window("w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES).operator(
        "many", lambda frame: frame.filter("n > 5")
    ).sink("out", kept.sink)
    runs.submit(pipeline)
    for segment in cuts(rows, seed=9):
        source.append(segment)
    eventually(lambda: runs.pipelines["p"] == "running")
    runs.drain()
    expected = [
        (start, sensor, n, total * 10) for start, sensor, n, total in Windows(5).expected(rows) if n > 5
    ]
    assert window_rows(kept.rows) == expected
    assert [report.kind for report in runs.stages()] == ["direct", "held", "direct"]
