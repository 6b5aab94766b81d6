"""Operators that fail: who is named, what is kept, and how the pipeline goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import (
    AGGREGATES,
    Kept,
    Windows,
    folder_rows,
    from_spool,
    raises_when,
    reading,
    readings,
    table,
    window_rows,
)

from penstock import Engine, Pipeline, sinks
from penstock.spark.ends import SinkError
from penstock.spark.refusals import PipelineFailed
from penstock.stages.build import OperatorError

pytestmark = pytest.mark.spark
ROWS = readings(60, seconds=30)


def _with_id(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda frame: frame.withColumn("id", check("id"))


def failed(runs: Engine, name: str = "p") -> BaseException:
    """Why the pipeline failed, once it has."""
    eventually(lambda: runs.pipelines[name] == "failed" and runs.error(name) is not None)
    error = runs.error(name)
    assert error is not None
    return error


def test_of_three_fused_operators_the_one_that_fails_is_named(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator("first", lambda frame: frame.withColumn("text", frame["sensor"]))
    stream = stream.operator("cast", lambda frame: frame.selectExpr("id", "cast(text as int) as number"))
    stream.operator("last", lambda frame: frame.filter("number > 0 or id >= 0")).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(table(ROWS))
    error = failed(runs)
    assert isinstance(error, OperatorError)
    assert (error.pipeline, error.operator) == ("p", "cast")
    assert str(error).startswith("operator 'cast' of pipeline 'p' failed: [CAST_INVALID_INPUT]")
    assert str(error).endswith(": the pipeline stops, its queues are kept")
    assert kept.rows == []


@pytest.mark.parametrize("guilty", ["first", "second", "third"])
def test_a_python_function_that_raises_is_named_wherever_it_stands_and_its_rows_are_kept(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, guilty: str
) -> None:
    source, runs, flag = spool(), engine(), tmp_path / "flag"
    flag.touch()
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    for name in ("first", "second", "third"):
        check = raises_when(flag if name == guilty else tmp_path / "never")
        stream = stream.operator(name, _with_id(check))
    stream.sink("out", sinks.Parquet(tmp_path / "out"))
    runs.submit(pipeline)
    source.append(table(ROWS))
    error = failed(runs)
    assert isinstance(error, OperatorError)
    assert error.operator == guilty
    assert "ValueError: the flag is up at row " in str(error)
    assert folder_rows(tmp_path / "out") == []
    flag.unlink()
    runs.resume("p")
    runs.drain()
    assert folder_rows(tmp_path / "out") == ROWS
    assert runs.error("p") is None


def test_an_operator_that_raises_when_it_is_declared_is_named_and_nothing_runs(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    healthy = Pipeline("healthy")
    healthy.source("readings", from_spool(source)).sink("out", kept.sink)
    runs.submit(healthy)

    def broken(frame: Any) -> Any:
        raise KeyError("no such thing")

    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator("fine", lambda frame: frame.select("id"))
    stream.operator("broken", broken).sink("out", Kept().sink)
    with pytest.raises(OperatorError) as caught:
        runs.submit(pipeline)
    assert str(caught.value) == (
        "operator 'broken' of pipeline 'p' raised KeyError: 'no such thing': "
        "the pipeline stops, its queues are kept"
    )
    source.append(table(ROWS))
    runs.drain()
    assert runs.pipelines == {"healthy": "running"}
    assert kept.column("id") == [row["id"] for row in ROWS]


def test_the_other_pipelines_go_on_and_the_one_that_failed_loses_nothing(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    """Both read one spool: what the healthy one has done with stays for the other."""
    source, kept, runs, flag = spool(), Kept(), engine(), tmp_path / "flag"
    healthy, sick = Pipeline("healthy"), Pipeline("sick")
    healthy.source("readings", from_spool(source)).sink("out", kept.sink)
    check = raises_when(flag)
    sick.source("readings", from_spool(source)).operator(
        "check", lambda frame: frame.withColumn("id", check("id"))
    ).sink("out", sinks.Parquet(tmp_path / "out"))
    runs.submit(healthy)
    runs.submit(sick)
    source.append(table(ROWS[:20]))
    runs.drain()
    flag.touch()
    source.append(table(ROWS[20:40]))
    failed(runs, "sick")
    source.append(table(ROWS[40:]))
    eventually(lambda: len(kept.rows) == 60)
    assert runs.pipelines == {"healthy": "running", "sick": "failed"}
    assert folder_rows(tmp_path / "out") == ROWS[:20]
    flag.unlink()
    runs.resume("sick")
    runs.drain()
    assert kept.column("id") == [row["id"] for row in ROWS]
    assert folder_rows(tmp_path / "out") == ROWS


def test_a_stage_with_state_that_failed_goes_on_with_exact_windows(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, runs, flag = spool(), engine(), tmp_path / "flag"
    rows = readings(200, seconds=40)
    check = raises_when(flag)
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator("check", lambda frame: frame.withColumn("value", check("value").cast("double")))
    window = stream.window("w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES)
    window.sink("out", sinks.Parquet(tmp_path / "out"))
    runs.submit(pipeline)
    source.append(table(rows[:100]))
    runs.drain()
    flag.touch()
    source.append(table(rows[100:150]))
    error = failed(runs)
    assert isinstance(error, OperatorError)
    assert error.operator == "check"
    assert "ValueError: the flag is up at row " in str(error)
    source.append(table(rows[150:]))
    flag.unlink()
    runs.resume("p")
    runs.drain()
    assert window_rows(folder_rows(tmp_path / "out", "n")) == Windows(5).expected(rows)


def test_a_sinks_own_function_that_raises_is_named_and_gets_its_rows_again(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, runs, got = spool(), engine(), []
    broken = True

    def take(rows: Any, batch: int) -> None:
        if broken:
            raise OSError("the house is full")
        got.extend(rows.to_pylist())

    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator("same", lambda frame: frame).sink(
        "out", sinks.Callback(take)
    )
    runs.submit(pipeline)
    source.append(table(ROWS))
    error = failed(runs)
    assert isinstance(error, SinkError)
    assert str(error) == (
        "the sink's function at stage 'p.same' raised OSError: the house is full: "
        "the pipeline stops, its queues are kept"
    )
    broken = False
    runs.resume("p")
    runs.drain()
    assert got == ROWS


def test_a_failed_pipeline_is_not_started_by_another_engine_until_it_is_told_to_go_on(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, state: Path
) -> None:
    source, flag, first = spool(), tmp_path / "flag", engine()
    flag.touch()

    def declared() -> Pipeline:
        check = raises_when(flag)
        pipeline = Pipeline("p")
        pipeline.source("readings", from_spool(source)).operator(
            "check", lambda frame: frame.withColumn("id", check("id"))
        ).sink("out", sinks.Parquet(tmp_path / "out"))
        return pipeline

    first.submit(declared())
    source.append(table(ROWS))
    reason = str(failed(first))
    first.stop()
    flag.unlink()
    second = engine()
    with pytest.raises(PipelineFailed) as caught:
        second.submit(declared())
    assert str(caught.value) == (
        f"pipeline 'p' stopped earlier: {reason}. Its queues are kept; mend the cause, then run "
        "`penstock resume` with its state directory, or submit it with resume=True"
    )
    assert json.loads((state / "p" / "failed.json").read_text())["stage"] == "p.check"
    second.submit(declared(), resume=True)
    second.drain()
    assert folder_rows(tmp_path / "out") == ROWS
    assert not (state / "p" / "failed.json").exists()


def test_a_request_on_disk_resumes_a_failed_pipeline(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, state: Path
) -> None:
    """What `penstock resume` does from another process."""
    source, kept, runs, flag = spool(), Kept(), engine(), tmp_path / "flag"
    flag.touch()
    check = raises_when(flag)
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator(
        "check", lambda frame: frame.withColumn("id", check("id"))
    ).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(table([reading(1, 1.0)]))
    failed(runs)
    flag.unlink()
    (state / "p" / "resume").touch()
    eventually(lambda: kept.column("id") == [1])
    assert runs.pipelines == {"p": "running"}
    assert not (state / "p" / "resume").exists()


def test_a_failed_pipeline_that_is_forgotten_keeps_nothing_in_the_spool_it_read(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, runs, flag = spool(), engine(), tmp_path / "flag"
    flag.touch()
    check = raises_when(flag)
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).operator("check", _with_id(check)).sink(
        "out", Kept().sink
    )
    runs.submit(pipeline)
    source.append(table(ROWS))
    failed(runs)
    eventually(lambda: not runs.stages())
    runs.cancel("p", forget=True)
    other = source.subscribe("other")
    taken = other.take(None, tmp_path / "scratch")
    other.commit(taken)
    other.release(taken)
    assert source.segments == ()


def test_a_pipeline_that_could_not_even_start_may_change_and_keeps_nothing(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, kept, runs = spool(), Kept(), engine()

    def declared(*columns: str) -> Pipeline:
        pipeline = Pipeline("p")
        stream = pipeline.source("readings", from_spool(source))
        for number, column in enumerate(columns):
            stream = stream.operator(
                f"step {number}", lambda frame, column=column: frame.select("id", column)
            )
        stream.sink("out", kept.sink)
        return pipeline

    with pytest.raises(OperatorError):
        runs.submit(declared("nowhere"))
    source.append(table(ROWS))
    other = source.subscribe("other")
    taken = other.take(None, tmp_path / "scratch")
    other.commit(taken)
    other.release(taken)
    assert source.segments == ()
    runs.submit(declared("sensor", "sensor"))
    source.append(table(ROWS))
    runs.drain()
    assert kept.column("id") == [row["id"] for row in ROWS]
