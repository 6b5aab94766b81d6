"""A running engine that is watched: its page, its metrics, a changed target, a failure, the report."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from scripts.browser import NO_CHROMIUM, Browser, find_chromium
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
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
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
            _fail(source, page, caplog)
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


def _fail(source: Spool, page: Dashboard, caplog: pytest.LogCaptureFixture) -> None:
    """A pipeline that dies is an alert within ten seconds of the row that kills it, while nobody looks."""
    killed_at = time.monotonic()
    source.append(table(ROWS[90:]))
    eventually(lambda: any("alert: failed broken" in each.getMessage() for each in caplog.records), 10)
    assert time.monotonic() - killed_at < 10
    assert "failed broken" in state(page)["alerts"]
    assert state(page)["pipelines"]["broken"]["state"] == "failed"
    assert state(page)["pipelines"]["p"]["state"] == "running"


def _report(folder: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder), "--out", str(out)]) == 0
    text = out.read_text()
    assert "A pipeline has stopped by an error: broken." in text
    assert "p.out" in text
    assert "asked for" in text
    assert capsys.readouterr().out.endswith("run.html\n")


@pytest.mark.skipif(find_chromium() is None, reason=NO_CHROMIUM)
def test_a_browser_shows_what_an_engine_does_and_pauses_a_pipeline(spark: Any, tmp_path: Path) -> None:
    with Spool(tmp_path / "input") as source, Engine(spark, state=tmp_path / "state", slots=2) as engine:
        pipeline = Pipeline("p")
        rows = pipeline.source("readings", from_spool(source)).operator("same", lambda frame: frame)
        rows.sink("out", Kept().sink, latency="60s")
        engine.submit(pipeline)
        with Watch(engine) as watch, Dashboard(watch, port=0) as page, Browser(1280, 900) as browser:
            browser.open(page.url)
            source.append(table(ROWS))
            browser.wait_for("document.querySelector('svg .sink .value')?.textContent.includes('100%')")
            stage = browser.run("document.querySelector('svg .stage').getAttribute('aria-label')")
            assert stage.startswith("p.same: well within target; 0 rows wait")
            browser.run("document.querySelector('#graphs article button').focus()")
            browser.press("Enter")
            browser.press("Enter")
            browser.wait_for("document.querySelector('#graphs .badge').textContent == 'paused'")
            assert engine.pipelines == {"p": "paused"}
            assert browser.errors == []
