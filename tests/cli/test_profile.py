from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.cli.profile import _sizes, draw
from penstock.errors import PenstockError
from penstock.measure.batch_costs import BatchCost, costs_of
from penstock.measure.turns import TurnRecord
from penstock.pipeline.nodes import Sink, Source
from penstock.pipeline.rehearsal import let_wait
from penstock.spark.profiles import Profiles
from penstock.spark.sized_turns import batch_costs
from penstock.spark.trace_feed import SEGMENTS, TraceFeed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRACE = pa.table({"id": list(range(2000))})


def turn(stage: str, rows: int, seconds: float) -> TurnRecord:
    return TurnRecord(stage, "p", 1, "direct", 1, 10.0, 10.0 + seconds, rows, rows, 0.0, 0.0, seconds)


def replayed() -> Pipeline:
    pipeline = Pipeline("p", fuse=False)
    read = pipeline.source("in", sources.Replay(TRACE, 10.0, loop=False)).operator("read", lambda rows: rows)
    read.operator("keep", lambda rows: rows).sink(
        "out", sinks.Callback(lambda table, batch: None), latency="100ms"
    )
    return pipeline


def test_the_median_of_turns_of_about_that_size_counts() -> None:
    records = [turn("p.read", 100, 0.1), turn("p.read", 90, 0.2), turn("p.read", 100, 0.9)]
    records += [turn("p.read", 10, 5.0), turn("p.keep", 100, 0.3)]
    assert costs_of(records, 100) == [BatchCost("p.read", 100, 3, pytest.approx(0.2))]  # type: ignore[arg-type]


def test_sources_give_what_is_asked_for_and_nobody_is_late(tmp_path: Path) -> None:
    pipeline = replayed()
    let_wait(pipeline)
    with TraceFeed([pipeline], tmp_path) as feed:
        source, sink = pipeline.nodes["in"], pipeline.nodes["out"]
        assert isinstance(source, Source)
        assert isinstance(source.spec, sources.FromSpool)
        assert source.spec.schema == "`id` bigint"
        consumer = source.spec.spool.subscribe("c")
        feed(700)
        # The trace has 2,000 rows, and begins again.
        assert consumer.rows_waiting == 700 * SEGMENTS
    assert isinstance(sink, Sink)
    assert sink.latency_seconds is None


def test_a_source_that_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    pipeline = Pipeline("p")
    with Spool(tmp_path) as spool:
        stream = pipeline.source("in", sources.FromSpool(spool, "id LONG"))
        stream.sink("out", sinks.Callback(lambda table, batch: None))
        with pytest.raises(PenstockError) as error:
            TraceFeed([pipeline], tmp_path / "rows")
    assert str(error.value) == (
        "source 'in' of pipeline 'p' must be a Replay to be profiled, got FromSpool: "
        "replay a sample of what it gives"
    )


@pytest.mark.parametrize("text", ["", "a", "0,5"])
def test_sizes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        _sizes(text)
    assert _sizes("100,1,10") == (1, 10, 100)


@pytest.mark.spark
def test_every_stage_is_measured_at_every_size_and_the_costs_are_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = replayed()
    let_wait(pipeline)
    told: list[str] = []
    settings = {"slots": 2, "policy": "random", "consumption": "planned", "planning": "1d"}
    with (
        TraceFeed([pipeline], tmp_path / "rows") as feed,
        Engine(spark, state=tmp_path / "state", **settings) as engine,
    ):
        engine.submit(pipeline)
        found = batch_costs(engine, (5, 50), 20.0, feed, told.append)
        engine.keep_profiles(tmp_path)
    places = [(each.stage, each.rows) for each in found]
    assert places == [("p.read", 5), ("p.read", 50), ("p.keep", 5), ("p.keep", 50)]
    assert all(each.turns >= 2 and each.seconds > 0.0 for each in found)
    assert told == [f"{size} rows a turn: 2 of 2 stages had such turns" for size in (5, 50)]
    assert Profiles(tmp_path / "profiles.json").of("p.keep") is not None
    draw(found, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
