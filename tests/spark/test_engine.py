"""Submit, pause, resume, cancel and forget, while other pipelines run."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import AGGREGATES, Kept, Windows, from_spool, readings, table, window_rows

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.errors import PenstockError
from penstock.scheduling.decisions import Grant
from penstock.spark.refusals import AnotherVersion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = readings(120, seconds=60)


def passing(name: str, source: Spool, kept: Kept) -> Pipeline:
    pipeline = Pipeline(name)
    pipeline.source("readings", from_spool(source)).operator("same", lambda frame: frame).sink(
        "out", kept.sink
    )
    return pipeline


def windowed(name: str, source: Spool, kept: Kept) -> Pipeline:
    pipeline = Pipeline(name)
    pipeline.source("readings", from_spool(source)).window(
        "w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES
    ).sink("out", kept.sink)
    return pipeline


def turns(runs: Engine, stage: str) -> int:
    [report] = [report for report in runs.stages() if report.stage == stage]
    return report.figures.total_turns


def test_a_paused_pipeline_gets_no_turn_while_others_run_and_loses_nothing(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, runs = spool(), engine()
    plain, windows, other = Kept(), Kept(), Kept()
    runs.submit(passing("plain", source, plain))
    runs.submit(windowed("windows", source, windows))
    runs.submit(passing("other", source, other))
    source.append(table(ROWS[:40]))
    runs.drain()
    runs.pause("plain")
    runs.pause("windows")
    assert runs.pipelines == {"plain": "paused", "windows": "paused", "other": "running"}
    before = turns(runs, "plain.same"), turns(runs, "windows.w")
    source.append(table(ROWS[40:80]))
    source.append(table(ROWS[80:]))
    eventually(lambda: len(other.rows) == 120)
    assert (turns(runs, "plain.same"), turns(runs, "windows.w")) == before
    assert len(plain.rows) == 40
    with pytest.raises(
        PenstockError, match=r"^pipelines must be idle within 0\.1 s, but 'plain' has 80 rows"
    ):
        runs.drain(0.1)
    runs.resume("plain")
    runs.resume("windows")
    runs.drain()
    assert plain.column("id") == list(range(120))
    assert window_rows(windows.rows) == Windows(5).expected(ROWS)


def test_a_replay_stands_still_while_its_pipeline_is_paused(engine: EngineFactory) -> None:
    kept, runs = Kept(), engine()
    pipeline = Pipeline("p")
    trace = sources.Replay(table(ROWS), rows_per_second=200, tick_seconds=0.05)
    pipeline.source("trace", trace).sink("out", kept.sink)
    running = runs.submit(pipeline)
    eventually(lambda: len(kept.rows) >= 10)
    runs.pause("p")
    runs._dispatcher.wait_for_end(running.stages[0])
    played, began = len(kept.rows) + running.rows_waiting, time.monotonic()
    eventually(lambda: time.monotonic() > began + 0.5)
    # At most the tick of 10 rows that was under way came after the pause.
    assert len(kept.rows) + running.rows_waiting <= played + 10
    runs.resume("p")
    eventually(lambda: len(kept.rows) > played + 10)
    runs.cancel("p")
    assert Counter(kept.column("id")) == Counter(number % 120 for number in range(len(kept.rows)))


def test_cancelling_one_pipeline_leaves_the_others_and_its_name_is_free(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, one, two, runs = spool(), Kept(), Kept(), engine()
    runs.submit(windowed("one", source, one))
    runs.submit(passing("two", source, two))
    source.append(table(ROWS[:60]))
    runs.drain()
    runs.cancel("one")
    assert runs.pipelines == {"two": "running"}
    source.append(table(ROWS[60:]))
    runs.drain()
    assert two.column("id") == list(range(120))
    assert window_rows(one.rows) == Windows(5).expected(ROWS[:60])
    with pytest.raises(PenstockError, match=r"^no pipeline 'one' runs here, of \['two'\]$"):
        runs.pause("one")


def test_a_cancelled_pipeline_goes_on_from_its_state_and_a_forgotten_one_begins_anew(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, first, second, third, runs = spool(), Kept(), Kept(), Kept(), engine()
    # A reader that never reads keeps every segment in the spool.
    source.subscribe("keeper")
    runs.submit(passing("p", source, first))
    source.append(table(ROWS[:60]))
    runs.drain()
    runs.cancel("p")
    assert (state / "p" / "pipeline.json").exists()
    source.append(table(ROWS[60:]))
    runs.submit(passing("p", source, second))
    runs.drain()
    runs.cancel("p", forget=True)
    assert not (state / "p").exists()
    runs.submit(passing("p", source, third))
    runs.drain()
    assert first.column("id") == list(range(60))
    assert second.column("id") == list(range(60, 120))
    assert third.column("id") == list(range(120))


def test_two_pipelines_of_one_name_are_refused(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, runs = spool(), Kept(), engine()
    runs.submit(passing("p", source, kept))
    with pytest.raises(PenstockError) as caught:
        runs.submit(passing("p", source, Kept()))
    assert str(caught.value) == (
        "pipelines of an engine must have names of their own, got 'p' twice: cancel that one first"
    )
    source.append(table(ROWS))
    runs.drain()
    assert kept.column("id") == list(range(120))


def test_state_of_another_version_is_refused_with_the_differences(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    runs.submit(windowed("p", source, kept))
    runs.cancel("p")
    changed = Pipeline("p", version="2")
    changed.source("readings", from_spool(source)).window(
        "w", on="ts", size="10s", by="sensor", aggregate=AGGREGATES
    ).sink("out", kept.sink)
    with pytest.raises(AnotherVersion) as caught:
        runs.submit(changed)
    assert caught.value.changes == [
        "version was '1', is '2'",
        "stage 'p.w': operator 'w': size_seconds was 5.0, is 10.0",
        "stage 'p.w': operator 'w': slide_seconds was 5.0, is 10.0",
    ]
    assert str(caught.value) == (
        f"pipeline 'p' must be the one whose state lies in {state / 'p'}, but: "
        f"{'; '.join(caught.value.changes)}. It is not started: run the old version until its queues are "
        "empty, or give the pipeline another name or state directory"
    )
    assert "p" not in runs.pipelines
    source.append(table(ROWS))
    runs.submit(windowed("p", source, kept))
    runs.drain()
    assert window_rows(kept.rows) == Windows(5).expected(ROWS)


def test_a_target_below_the_floor_is_warned_of(
    engine: EngineFactory, spool: SpoolFactory, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(spool())).sink("out", sinks.Console(), latency="1ms")
    with caplog.at_level(logging.WARNING, "penstock"):
        engine().submit(pipeline)
    assert [record.message for record in caplog.records if "1 ms" in record.message] != []


def test_decisions_are_kept_where_they_can_be_read_later(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, runs = spool(), engine(consumption="at-most-50")
    runs.submit(passing("p", source, Kept()))
    source.append(table(ROWS))
    runs.drain()
    granted = [each.rows for each in runs.decisions("p.same") if isinstance(each, Grant)]
    assert granted == [50, 50, 20]
    runs.stop()
    stored = [json.loads(line) for line in (state / "decisions.jsonl").read_text().splitlines()]
    assert [each["rows"] for each in stored if each.get("stage") == "p.same" and "rows" in each] == granted


def test_a_session_of_the_users_own_is_accepted_and_stays(engine: EngineFactory, spark: object) -> None:
    runs = engine()
    runs.stop()
    runs.stop()
    assert runs.spark is spark
    assert runs.spark.range(3).count() == 3


def test_a_master_is_refused_for_a_session_that_runs_already(engine: EngineFactory) -> None:
    with pytest.raises(PenstockError) as caught:
        engine(master="spark://127.0.0.1:7077")
    assert str(caught.value) == (
        "a master and a region must be for a session that Penstock starts, got 'spark://127.0.0.1:7077' "
        "with a session that runs already: it has its own"
    )


def test_an_engine_that_is_refused_leaves_its_directory_free(spark: SparkSession, state: Path) -> None:
    for wrong in ({"slots": -1}, {"plan_reserve": 1.0, "policy": "batchit"}):
        with pytest.raises(PenstockError):
            Engine(spark, state=state, **wrong)  # type: ignore[arg-type]
    Engine(spark, state=state, slots=2).stop()
