"""The parts of `penstock calibrate` that need no Spark."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from penstock import Pipeline, sinks, sources
from penstock.cli.calibrate import Calibrated, busy_share, scale, table
from penstock.errors import PenstockError
from penstock.pipeline.nodes import Sink, Source
from penstock.pipeline.rehearsal import let_go

TRACE = pa.table({"value": ["a", "b"]})


def spec_of(pipeline: Pipeline, name: str) -> object:
    node = pipeline.nodes[name]
    assert isinstance(node, Source)
    return node.spec


def test_sources_give_half_as_many_rows() -> None:
    pipeline = Pipeline("p")
    pipeline.source("trace", sources.Replay(TRACE, rows_per_second=50)).sink("a", sinks.Console())
    pipeline.source("rate", sources.Rate(rows_per_second=9)).sink("b", sinks.Console())
    scale(pipeline, 0.5)
    replay, rate = spec_of(pipeline, "trace"), spec_of(pipeline, "rate")
    assert isinstance(replay, sources.Replay)
    assert (replay.rows_per_second, replay.trace) == (25.0, TRACE)
    assert rate == sources.Rate(rows_per_second=4)


def test_nothing_is_written_to_the_sinks_of_the_user() -> None:
    pipeline = Pipeline("p")
    pipeline.source("rate", sources.Rate(1)).sink("out", sinks.JsonLines("out"), latency="2s")
    let_go(pipeline)
    sink = pipeline.nodes["out"]
    assert isinstance(sink, Sink)
    assert isinstance(sink.spec, sinks.Callback)
    assert sink.latency_seconds == 2.0


def test_a_source_whose_load_is_not_ours_to_set_is_refused_with_the_way_out() -> None:
    pipeline = Pipeline("p")
    pipeline.source("files", sources.Files("in")).sink("out", sinks.Console())
    with pytest.raises(PenstockError) as error:
        scale(pipeline, 0.5)
    assert str(error.value) == (
        "source 'files' of pipeline 'p' must be a Replay or a Rate to be scaled, got Files: "
        "feed it at half its load, and give --as-is"
    )


def test_a_target_is_twice_the_p95() -> None:
    found = Calibrated("ads", "out", results=120, p50=0.1, p95=0.4, busy=0.47)
    assert found.target_seconds == 0.8
    console = Console(file=io.StringIO(), width=100)
    console.print(table([found]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "0.400" in shown
    assert "0.80" in shown
    assert "47%" in shown


class Working:
    """An engine whose turns take half of one of its two slots."""

    pipelines: Mapping[str, str] = {}
    pool_slots = 2

    def tenants(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(slot_seconds=time.monotonic() / 4) for _ in range(2)]


def test_the_load_is_the_share_of_the_slots_time_that_turns_take() -> None:
    engine: Any = Working()
    assert busy_share(engine, 0.2, Console(file=io.StringIO())) == pytest.approx(0.25, abs=0.02)
