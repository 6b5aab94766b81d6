"""A running engine that is watched: its page, its metrics, a changed target, a failure, the report."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import eventually
from tests.spark.streams import Kept, from_spool, readings, table

from penstock import Engine, Pipeline, Spool
from penstock.cli.main import main
from penstock.dashboard import Dashboard, Watch
from penstock.errors import PenstockError

pytestmark = pytest.mark.spark
ROWS = readings(100, seconds=30)


def get(page: Dashboard, path: str) -> str:
    with urllib.request.urlopen(page.address + path, timeout=20) as answer:
        text: bytes = answer.read()
        return text.decode()


def state(page: Dashboard) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(get(page, "api/state"))["state"]
    return told


def test_an_engine_is_watched_changed_and_reported_on(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, folder = Kept(), tmp_path / "state"
    with Spool(tmp_path / "input") as source, Engine(spark, state=folder, slots=2) as engine:
        pipeline = Pipeline("p")
        stream = pipeline.source("readings", from_spool(source)).operator("same", lambda frame: frame).queue()
        stream.operator("half", lambda frame: frame.filter("id % 2 = 0")).sink(
            "out", kept.sink, latency="60s"
        )
        engine.submit(pipeline)
        broken = Pipeline("broken")
        broken.source("readings", from_spool(source)).operator(
            "bad", lambda frame: frame.selectExpr("if(id = 99, raise_error('no'), id) as id")
        ).sink("out", Kept().sink)
        engine.submit(broken)
        with Watch(engine) as watch, Dashboard(watch, port=0) as page:
            source.append(table(ROWS[:90]))
            engine.drain()
            eventually(lambda: state(page)["sinks"]["p.out"]["results"] == 45)
            told = state(page)
            assert told["stages"]["p.same"]["turns"] >= 1
            assert told["sinks"]["p.out"]["in_time"] == 1.0
            assert 'penstock_rows_in_total{pipeline="p",stage="p.same"} 90\n' in get(page, "metrics")
            _change_target(engine)
            eventually(lambda: state(page)["sinks"]["p.out"]["target_seconds"] == 0.001)
            assert state(page)["stages"]["p.same"]["target_seconds"] == 0.001
            _fail(source, page)
            assert "p.same" in get(page, "api/stage?name=p.same")
    _report(folder, tmp_path / "run.html", capsys)


def _change_target(engine: Engine) -> None:
    with pytest.raises(PenstockError) as refused:
        engine.set_latency("p", "nowhere", "1s")
    assert str(refused.value) == "pipeline 'p' has no sink 'nowhere', of ['out']: no target was changed"
    engine.set_latency("p", "out", "1ms")
    assert engine.graphs["p"].stage("p.same").latency_seconds == 0.001
    [out] = [each for each in engine.sinks() if each.pipeline == "p"]
    assert (out.target_seconds, out.share_in_time) == (0.001, 0.0)
    view = engine.changes()[-1]
    assert view.sentence == "target of p.out: 1 ms (asked for)"


def _fail(source: Spool, page: Dashboard) -> None:
    """A pipeline that dies is an alert within ten seconds of its failure."""
    source.append(table(ROWS[90:]))
    eventually(lambda: state(page)["pipelines"]["broken"]["state"] == "failed")
    failed_at = time.time()
    eventually(lambda: "failed broken" in state(page)["alerts"], seconds=10)
    assert time.time() - failed_at < 10
    assert state(page)["pipelines"]["p"]["state"] == "running"


def _report(folder: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder), "--out", str(out)]) == 0
    text = out.read_text()
    assert "A pipeline has stopped by an error: broken." in text
    assert "p.out" in text
    assert "asked for" in text
    assert capsys.readouterr().out.endswith("run.html\n")
