"""The server of the live page, asked over its port."""

from __future__ import annotations

import http.client
import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.dashboard.fakes import FakeEngine
from tests.spark.conftest import eventually

from penstock.dashboard import Dashboard, Watch
from penstock.dashboard.delta import applied
from penstock.dashboard.handler import FILES, PAGE
from penstock.errors import PenstockError

MARK = {"X-Penstock": "test"}


@pytest.fixture
def watch(engine: FakeEngine) -> Iterator[Watch]:
    engine.advance(10)
    with Watch(engine, clock=engine.clock) as watch:
        yield watch


@pytest.fixture
def page(watch: Watch) -> Iterator[Dashboard]:
    with Dashboard(watch, port=0) as page:
        yield page


def ask(
    page: Dashboard, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(urlsplit(page.address).netloc, timeout=20)
    text = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, text, headers or {})
    answer = connection.getresponse()
    got = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return got


def test_the_page_and_its_files_are_served_and_may_load_nothing_from_elsewhere(page: Dashboard) -> None:
    for path in FILES:
        status, text, headers = ask(page, path)
        assert (status, bool(text)) == (200, True)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    files = {file.name for file in PAGE.iterdir()}
    assert files == {name for name, _ in FILES.values()}
    for file in PAGE.iterdir():
        assert "://" not in file.read_text().replace("http://www.w3.org/2000/svg", "")


def test_the_state_and_the_metrics_are_told(page: Dashboard, engine: FakeEngine) -> None:
    status, text, _ = ask(page, "/api/state?history")
    told = json.loads(text)
    assert (status, told["full"], told["state"]["engine"]["slots"]) == (200, True, 2)
    assert told["state"]["stages"]["heat.warm"]["turns"] == 20
    status, text, headers = ask(page, "/metrics")
    assert 'penstock_turns_total{pipeline="heat",stage="heat.warm"} 20\n' in text
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")


def test_a_stage_tells_its_story_and_an_unknown_one_is_refused(page: Dashboard) -> None:
    status, text, _ = ask(page, "/api/stage?name=heat.per%20second")
    told = json.loads(text)
    assert (status, told["stage"]) == (200, "heat.per second")
    assert told["held_back"].startswith("heat.per second was held back by the schedule")
    assert told["cost"].startswith("A turn costs 20 ms and 3 µs for each row")
    assert len(told["decisions"]) == 12
    status, text, _ = ask(page, "/api/stage?name=nowhere")
    assert status == 404
    assert json.loads(text)["said"].startswith("no stage 'nowhere' runs, of ['heat.alarm',")


def test_pipelines_are_paused_and_resumed_and_targets_changed(page: Dashboard, engine: FakeEngine) -> None:
    assert ask(page, "/api/pause", {"pipeline": "heat"}, MARK)[0] == 200
    assert engine.pipelines["heat"] == "paused"
    assert ask(page, "/api/resume", {"pipeline": "heat"}, MARK)[0] == 200
    assert engine.pipelines["heat"] == "running"
    asked = {"pipeline": "heat", "sink": "alarms", "latency": "500ms"}
    assert ask(page, "/api/target", asked, MARK)[0] == 200
    _, text, _ = ask(page, "/api/state?history")
    told = json.loads(text)
    assert told["state"]["sinks"]["heat.alarms"]["target_seconds"] == 0.5
    assert told["changes"][-1][1:] == ["target", "heat.alarms", "500 ms", "asked for"]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/api/pause", {"pipeline": "heat"}, {}, 403),
        ("/api/pause", {"pipeline": "heat"}, {**MARK, "Origin": "http://evil.example"}, 403),
        ("/api/pause", {"pipeline": "heat"}, {**MARK, "Host": "evil.example"}, 403),
        ("/api/pause", {"pipeline": "nowhere"}, MARK, 409),
        ("/api/pause", ["heat"], MARK, 400),
        ("/api/target", {"pipeline": "heat", "sink": "alarms", "latency": "soon"}, MARK, 409),
        ("/api/target", {"pipeline": "heat", "sink": "alarms"}, MARK, 400),
        ("/api/pause", {"pipeline": "x" * 20_000}, MARK, 413),
        ("/api/else", {}, MARK, 404),
    ],
)
def test_what_should_not_be_changed_is_not(
    page: Dashboard, engine: FakeEngine, path: str, body: Any, headers: dict[str, str], status: int
) -> None:
    assert ask(page, path, body, headers)[0] == status
    assert engine.pipelines == {"heat": "running", "usage": "running"}
    assert engine.changes() == ()


def test_a_viewer_gets_everything_once_and_then_only_what_changed(
    page: Dashboard, watch: Watch, engine: FakeEngine
) -> None:
    connection = http.client.HTTPConnection(urlsplit(page.address).netloc, timeout=30)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    assert answer.getheader("Content-Type") == "text/event-stream"
    whole = json.loads(_data(answer))
    state = whole["state"]
    assert whole["full"]
    engine.advance(2)
    watch.fresh(0)
    while state["stages"]["heat.warm"]["turns"] < 24:
        frame = json.loads(_data(answer))
        assert "full" not in frame
        assert frame["seq"] == whole["seq"] + 1
        assert "operators" not in frame["state"].get("stages", {}).get("heat.warm", {})
        state, whole = applied(state, frame["state"]), frame
    there = json.loads(watch.whole())["state"]
    # Another look may have come meanwhile, which changes what watching has cost and nothing else.
    assert {**state, "engine": {}} == {**there, "engine": {}}
    answer.close()
    connection.close()


def _data(answer: http.client.HTTPResponse) -> str:
    while not (line := answer.readline().decode()).startswith("data: "):
        assert line in ("\n", ": still here\n")
    return line.removeprefix("data: ")


def test_its_address_is_kept_for_its_owner_alone_while_it_serves(watch: Watch, tmp_path: Path) -> None:
    with Dashboard(watch, port=0) as page:
        file = tmp_path / "dashboard.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        kept = json.loads(file.read_text())
        assert (kept["url"], kept["token"]) == (page.address, page.token)
        assert page.token not in page.url
    assert not file.exists()


def test_on_another_address_than_loopback_the_token_is_asked_for_and_remembered(watch: Watch) -> None:
    with Dashboard(watch, port=0, host="0.0.0.0") as page:
        assert page.url.endswith(f"?token={page.token}")
        assert ask(page, "/")[0] == 401
        assert ask(page, "/metrics", headers={"Authorization": f"Bearer {page.token}"})[0] == 200
        status, _, headers = ask(page, f"/?token={page.token}")
        assert (status, headers["Location"]) == (303, "/")
        cookie = headers["Set-Cookie"]
        assert "HttpOnly; SameSite=Strict" in cookie
        assert ask(page, "/", headers={"Cookie": cookie.split(";")[0]})[0] == 200


def test_a_port_that_is_taken_is_refused_with_what_to_do(page: Dashboard, watch: Watch) -> None:
    port = urlsplit(page.address).port or 0
    with pytest.raises(PenstockError) as refused:
        Dashboard(watch, port=port)
    assert str(refused.value) == (
        f"the page must have a port of its own, but 127.0.0.1:{port} cannot be had (Address already in use): "
        "give another one with --dashboard PORT, 0 for any"
    )


def test_an_alert_is_logged_when_it_begins_and_when_it_ends(
    watch: Watch, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock")
    engine.turn_since["heat.warm"] = engine.now - 8
    watch.fresh(0)
    watch.fresh(0)
    said = "alert: stuck heat.warm: a turn runs for 8 s; its turns take 0.1 s"
    assert [record.message for record in caplog.records].count(said) == 1
    engine.turn_since.clear()
    watch.fresh(0)
    assert "alert over: stuck heat.warm" in [record.message for record in caplog.records]


def test_a_viewer_that_goes_is_forgotten(page: Dashboard, watch: Watch) -> None:
    connection = http.client.HTTPConnection(urlsplit(page.address).netloc, timeout=30)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    _data(answer)
    assert watch._viewers == 1
    answer.close()
    connection.close()

    def gone() -> bool:
        watch.fresh(0)  # a frame, at which it is noticed
        return watch._viewers == 0

    eventually(gone)
