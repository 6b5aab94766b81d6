"""`penstock top`: attaches to a running engine and shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dashboard.fakes import FakeEngine

from penstock.cli.main import main
from penstock.dashboard import Dashboard, Watch


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dashboard]:
    monkeypatch.setenv("COLUMNS", "140")
    engine = FakeEngine(tmp_path)
    engine.advance(10)
    engine.turn_since["heat.warm"] = engine.now - 8
    engine.pool_nodes = 3
    with Watch(engine, clock=engine.clock) as watch, Dashboard(watch, port=0) as page:
        yield page


def test_it_finds_the_engine_of_a_state_directory_and_shows_it(
    page: Dashboard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--state", str(tmp_path), "--once"]) == 0
    shown = capsys.readouterr().out
    assert "of 2 slots busy on 3 nodes" in shown
    assert "✕ stuck heat.warm: a turn runs for 8 s; its turns take 0.1 s" in shown
    for name in ("heat.alarms", "● heat.warm stuck", "usage.hourly", "plant", "billing"):
        assert name in shown


def test_a_narrow_terminal_shows_every_stage_in_fewer_columns(
    page: Dashboard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["top", "--url", page.address, "--once"]) == 0
    shown = capsys.readouterr().out
    assert "row stays" in shown
    assert "heat.per second" in shown
    assert "…" not in shown


def test_it_goes_by_an_address_too(page: Dashboard, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--url", page.address, "--once"]) == 0
    assert "heat.alarms" in capsys.readouterr().out


def test_without_an_engine_it_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--state", str(tmp_path), "--once"]) == 2
    assert capsys.readouterr().err == (
        f"penstock: no engine serves a page on {tmp_path}: start it with "
        f"`penstock run FILE.py --state {tmp_path} --dashboard`, or name its address with --url\n"
    )


def test_an_engine_that_has_gone_is_told_apart(page: Dashboard, capsys: pytest.CaptureFixture[str]) -> None:
    address = page.address
    page.close()
    assert main(["top", "--url", address, "--once"]) == 2
    assert capsys.readouterr().err.startswith(f"penstock: {address} must answer, but ")
