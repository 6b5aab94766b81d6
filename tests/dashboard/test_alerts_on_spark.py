"""What goes wrong in a running engine is told within ten seconds of when it happened, while nobody looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import eventually
from tests.spark.streams import AGGREGATES, Kept, from_spool, readings, table

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.dashboard import Watch
from penstock.measure.profiles import Profiler
from penstock.workloads.mosquitto import free_port

pytestmark = pytest.mark.spark
ROWS = readings(100, seconds=30)
LIMIT_SECONDS = 10.0


class Hanging:
    """A callback sink that does not come back from turns once it hangs, until it is let go."""

    def __init__(self) -> None:
        self.hangs, self.let_go = threading.Event(), threading.Event()
        self.began_at = 0.0

    def __call__(self, table: pa.Table, batch: int) -> None:
        if self.hangs.is_set():
            self.began_at = time.monotonic()
            self.let_go.wait(60)


def told(caplog: pytest.LogCaptureFixture, words: str) -> Callable[[], bool]:
    return lambda: any(words in record.getMessage() for record in caplog.records)


def windowed(source: Spool) -> Pipeline:
    pipeline = Pipeline("dies")
    rows = pipeline.source("readings", from_spool(source))
    rows.window("w", on="ts", size="5s", by="sensor", aggregate=AGGREGATES).sink("out", Kept().sink)
    return pipeline


def hanging(source: Spool, sink: Hanging) -> Pipeline:
    pipeline = Pipeline("hangs")
    pipeline.source("readings", from_spool(source)).operator("same", lambda frame: frame).sink(
        "out", sinks.Callback(sink)
    )
    return pipeline


def between_brokers(port: int) -> Pipeline:
    pipeline = Pipeline("lonely")
    messages = pipeline.source("messages", sources.Mqtt("127.0.0.1", "sensors/+", port))
    messages.operator("as payload", lambda frame: frame.selectExpr("value as payload")).sink(
        "replies", sinks.Mqtt("127.0.0.1", port)
    )
    return pipeline


def test_a_query_that_dies_a_turn_that_hangs_and_brokers_that_are_away_are_told_within_ten_seconds(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Hanging()
    with (
        Spool(tmp_path / "a") as first,
        Spool(tmp_path / "b") as second,
        Engine(spark, state=tmp_path / "state", slots=2) as engine,
        Watch(engine),
    ):
        try:
            # Before the stage is there: its first turn is then its query's first, and that lives on after it.
            first.append(table(ROWS))
            engine.submit(windowed(first))
            engine.submit(hanging(second, sink))
            for each in range(Profiler.TRUSTED_TURNS + 1):
                second.append(table(ROWS[each : each + 1]))
                engine.drain()

            engine.submit(between_brokers(free_port()))
            lonely_at = time.monotonic()
            sink.hangs.set()
            second.append(table(ROWS))
            [query] = [each for each in spark.streams.active if each.name == "dies.w"]
            # It returns only when the query's callback has: the engine must notice, and open the gate.
            killer = threading.Thread(target=query.stop, daemon=True)
            killer.start()
            died_at = time.monotonic()

            eventually(told(caplog, "alert: failed dies: it has stopped: "), LIMIT_SECONDS)
            assert time.monotonic() - died_at < LIMIT_SECONDS
            assert "the query of stage 'dies.w' ended by itself" in str(engine.error("dies"))
            eventually(told(caplog, "alert: stuck hangs.same: a turn runs for "), LIMIT_SECONDS)
            assert time.monotonic() - sink.began_at < LIMIT_SECONDS
            assert engine.away == {"lonely.messages", "lonely.replies"}
            for name in engine.away:
                eventually(told(caplog, f"alert: away {name}: its broker has been away for "), LIMIT_SECONDS)
            assert time.monotonic() - lonely_at < LIMIT_SECONDS
            killer.join(10)
            assert not killer.is_alive()
        finally:
            sink.let_go.set()
