"""Sinks: what arrives, and what each of them promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import (
    AGGREGATES,
    Kept,
    Windows,
    folder_rows,
    from_spool,
    json_rows,
    readings,
    spool_rows,
    table,
    window_rows,
)

from penstock import Engine, Pipeline, Spool, sinks
from penstock.errors import PenstockError
from penstock.pipeline.endpoints import SinkSpec
from penstock.spark.ends import FolderEnd, QueueEnd

pytestmark = pytest.mark.spark
ROWS = readings(120, seconds=30)


def run(runs: Engine, source: Spool, sink: SinkSpec) -> None:
    """All rows through one direct stage to the sink, in two segments."""
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator("same", lambda frame: frame).sink("out", sink)
    runs.submit(pipeline)
    source.append(table(ROWS[:50]))
    runs.drain()
    source.append(table(ROWS[50:]))
    runs.drain()


def test_a_parquet_sink_holds_the_rows_in_files_named_by_turn(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    runs, folder = engine(), tmp_path / "out"
    run(runs, spool(), sinks.Parquet(folder))
    assert folder_rows(folder) == ROWS
    assert sorted(path.name for path in folder.iterdir()) == [
        "p.same-000000000.parquet",
        "p.same-000000001.parquet",
    ]
    assert pq.read_table(folder).num_rows == 120
    assert [report.guarantee for report in runs.sinks()] == ["exactly once"]


def test_a_json_lines_sink_holds_one_object_a_line_with_iso_times(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    runs, folder = engine(), tmp_path / "out"
    run(runs, spool(), sinks.JsonLines(folder))
    expected = [{**row, "ts": row["ts"].isoformat()} for row in ROWS]
    assert json_rows(folder) == expected
    assert [report.guarantee for report in runs.sinks()] == ["exactly once"]


def test_a_spool_sink_can_be_read_by_another_pipeline(engine: EngineFactory, spool: SpoolFactory) -> None:
    runs, between, kept = engine(), spool("between"), Kept()
    reader = Pipeline("reader")
    reader.source("readings", from_spool(between)).operator(
        "plus", lambda frame: frame.selectExpr("id + 1000 as id")
    ).sink("out", kept.sink)
    runs.submit(reader)
    run(runs, spool(), sinks.ToSpool(between))
    assert kept.column("id") == [row["id"] + 1000 for row in ROWS]
    assert {report.guarantee for report in runs.sinks()} == {"exactly once", "at least once"}


def test_a_spool_sink_keeps_the_rows_until_somebody_reads_them(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    runs, out = engine(), spool("out")
    run(runs, spool(), sinks.ToSpool(out))
    assert spool_rows(out) == ROWS
    assert [report.guarantee for report in runs.sinks()] == ["exactly once"]


def test_a_callback_gets_each_turns_rows_and_its_number(engine: EngineFactory, spool: SpoolFactory) -> None:
    runs, got = engine(), []
    run(runs, spool(), sinks.Callback(lambda rows, batch: got.append((batch, rows.to_pylist()))))
    assert got == [(0, ROWS[:50]), (1, ROWS[50:])]
    assert [report.guarantee for report in runs.sinks()] == ["at least once"]


def test_the_console_shows_the_first_rows_of_each_turn(
    engine: EngineFactory, spool: SpoolFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = engine()
    run(runs, spool(), sinks.Console(rows=2))
    shown = capsys.readouterr().out.splitlines()
    heads = [line for line in shown if line.startswith("turn ")]
    assert heads == ["turn 0: 50 rows", "turn 1: 70 rows"]
    assert len(shown) == 2 * (1 + 1 + 2)
    assert shown[1].split() == ["id", "sensor", "value", "ts"]
    assert [line.split()[0] for line in (shown[2], shown[3], shown[6], shown[7])] == ["0", "1", "50", "51"]
    assert [report.guarantee for report in runs.sinks()] == ["at least once"]


def test_a_foreach_batch_function_gets_a_data_frame_and_the_batchs_number(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    runs, got = engine(), []

    def take(frame: Any, batch: int) -> None:
        got.append((batch, frame.filter("value >= 50").count(), frame.count()))

    run(runs, spool(), sinks.ForeachBatch(take))
    high = [sum(row["value"] >= 50 for row in part) for part in (ROWS[:50], ROWS[50:])]
    assert got == [(0, high[0], 50), (1, high[1], 70)]
    assert [report.guarantee for report in runs.sinks()] == ["at least once"]


def test_a_turn_without_result_leaves_no_file(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, runs = spool(), engine()
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    none = stream.operator("none", lambda frame: frame.filter("id < 0"))
    none.sink("parquet", sinks.Parquet(tmp_path / "parquet"))
    none.sink("json", sinks.JsonLines(tmp_path / "json"))
    runs.submit(pipeline)
    source.append(table(ROWS))
    runs.drain()
    assert [path for name in ("parquet", "json") for path in (tmp_path / name).glob("*")] == []


@pytest.mark.parametrize("kind", ["parquet", "json", "spool"])
def test_a_large_result_arrives_whole_at_every_exactly_once_sink(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, kind: str
) -> None:
    source, out, runs = spool(), spool("out"), engine()
    rows = readings(30_000, seconds=30)
    chosen: dict[str, SinkSpec] = {
        "parquet": sinks.Parquet(tmp_path / "folder"),
        "json": sinks.JsonLines(tmp_path / "folder"),
        "spool": sinks.ToSpool(out),
    }
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream.operator("same", lambda frame: frame.select("id")).sink("out", chosen[kind])
    source.append(table(rows))
    runs.submit(pipeline)
    runs.drain()
    found = {
        "parquet": lambda: folder_rows(tmp_path / "folder"),
        "json": lambda: json_rows(tmp_path / "folder"),
        "spool": lambda: spool_rows(out),
    }[kind]()
    assert sorted(row["id"] for row in found) == list(range(30_000))
    assert [report.latency.count for report in runs.sinks()] == [30_000]


def test_windows_reach_a_json_lines_sink_with_their_bounds(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, runs = spool(), engine()
    pipeline = Pipeline("p")
    window = pipeline.source("readings", from_spool(source)).window(
        "w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES
    )
    window.sink("out", sinks.JsonLines(tmp_path / "out"))
    window.sink("copy", sinks.Parquet(tmp_path / "copy"))
    source.append(table(ROWS))
    runs.submit(pipeline)
    runs.drain()
    expected = Windows(5).expected(ROWS)
    assert window_rows(folder_rows(tmp_path / "copy", "n")) == expected
    rows = json_rows(tmp_path / "out")
    assert sorted((row["sensor"], row["n"], row["total"]) for row in rows) == sorted(
        (sensor, n, total) for _, sensor, n, total in expected
    )
    assert all(row["window"]["end"] > row["window"]["start"] for row in rows)
    assert json.dumps(rows)


def test_a_sink_that_is_none_of_ours_is_refused(engine: EngineFactory, spool: SpoolFactory) -> None:
    class Strange:
        guarantee = "exactly once"

    with pytest.raises(PenstockError) as caught:
        run(engine(), spool(), Strange())
    assert str(caught.value) == (
        "a sink must be one of penstock.sinks, got Strange: the runtime cannot write to it"
    )


def test_numbers_that_are_none_are_null_in_json_lines(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, runs = spool(), engine()
    pipeline = Pipeline("p")
    odd = "named_struct('a', array(double('Infinity'), 1.5D)) as deep"
    pipeline.source("readings", from_spool(source)).operator(
        "odd", lambda frame: frame.selectExpr("id", "double('NaN') as value", odd)
    ).sink("out", sinks.JsonLines(tmp_path / "out"))
    runs.submit(pipeline)
    source.append(table(ROWS[:1]))
    runs.drain()
    (file,) = (tmp_path / "out").glob("*.jsonl")
    line = json.loads(file.read_text(), parse_constant=pytest.fail)
    assert line == {"id": ROWS[0]["id"], "value": None, "deep": {"a": [None, 1.5]}}


def to_sink(source: Spool, sink: SinkSpec) -> Pipeline:
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator("same", lambda frame: frame).sink("out", sink)
    return pipeline


def test_a_pipeline_goes_on_with_a_sink_of_another_kind(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, kept = spool(), Kept()
    kinds = [
        sinks.Parquet(tmp_path / "out"),
        sinks.Table(tmp_path / "db", "t"),
        sinks.ToSpool(spool("other")),
        kept.sink,
    ]
    for number, sink in enumerate(kinds):
        runs = engine()
        runs.submit(to_sink(source, sink))
        source.append(table(ROWS[number * 10 : number * 10 + 10]))
        runs.drain()
        runs.stop()
    assert folder_rows(tmp_path / "out") == ROWS[:10]
    assert kept.column("id") == [row["id"] for row in ROWS[30:40]]


def test_rows_that_a_crash_left_unshown_are_not_lost_to_a_sink_of_another_kind(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    with monkeypatch.context() as crash:
        crash.setattr(FolderEnd, "show", lambda self, output: pytest.fail("a crash"))
        runs.submit(to_sink(source, sinks.Parquet(tmp_path / "out")))
        source.append(table(ROWS))
        eventually(lambda: runs.pipelines["p"] == "failed")
        runs.stop()
    with pytest.raises(PenstockError, match="start once with the old sink"):
        engine().submit(to_sink(source, kept.sink), resume=True)


def test_rows_that_a_crash_left_unshown_are_not_lost_to_another_spool(
    engine: EngineFactory, spool: SpoolFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, first, runs = spool(), spool("first"), engine()
    with monkeypatch.context() as crash:
        crash.setattr(QueueEnd, "show", lambda self, output: pytest.fail("a crash"))
        runs.submit(to_sink(source, sinks.ToSpool(first)))
        source.append(table(ROWS))
        eventually(lambda: runs.pipelines["p"] == "failed")
        runs.stop()
    runs = engine()
    with pytest.raises(PenstockError, match="start once with the old sink"):
        runs.submit(to_sink(source, sinks.ToSpool(spool("second"))), resume=True)
    runs.stop()
    runs = engine()
    runs.submit(to_sink(source, sinks.ToSpool(first)), resume=True)
    runs.drain()
    assert spool_rows(first) == ROWS
