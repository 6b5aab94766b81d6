"""`penstock resume` on a state directory, with an engine on it and without."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.queues.owner import OwnerLock


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with one pipeline that failed and one that did not."""
    for name in ("alerts", "bills"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pipeline.json").write_text("{}")
    failure = {"stage": "alerts.hot", "reason": "operator 'hot' failed: no such column", "at": 1.0}
    (tmp_path / "alerts/failed.json").write_text(json.dumps(failure))
    return tmp_path


@pytest.fixture
def engine_runs(state: Path) -> Iterator[None]:
    lock = OwnerLock(state)
    yield
    lock.release()


def test_without_an_engine_the_next_start_goes_on(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", "alerts", "--state", str(state)]) == 0
    assert capsys.readouterr().out == (
        "pipeline 'alerts' had stopped: operator 'hot' failed: no such column\n"
        "no engine runs on this state directory: the next one goes on with it, no row is lost\n"
    )
    assert not (state / "alerts/failed.json").exists()
    assert not (state / "alerts/resume").exists()


@pytest.mark.usefixtures("engine_runs")
def test_a_running_engine_is_asked_to_go_on(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", "alerts", "--state", str(state)]) == 0
    assert capsys.readouterr().out == (
        "pipeline 'alerts' had stopped: operator 'hot' failed: no such column\n"
        f"the engine that runs (process {os.getpid()}) goes on with it within two seconds\n"
    )
    assert (state / "alerts/resume").exists()
    assert (state / "alerts/failed.json").exists(), "the engine clears it when it has gone on"


def test_a_lock_file_that_nobody_holds_is_no_engine(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (state / "lock").write_text("12345\n")
    assert main(["resume", "alerts", "--state", str(state)]) == 0
    assert "no engine runs" in capsys.readouterr().out


def test_a_failure_whose_record_a_full_disk_cut_short_can_be_resumed(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "alerts/failed.json").write_text("")
    assert main(["resume", "alerts", "--state", str(state)]) == 0
    assert "had stopped: the reason could not be written\n" in capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["resume", *(str(argument) for argument in arguments)]) == 2
    return capsys.readouterr().err


def test_a_pipeline_that_has_not_failed_is_refused(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "bills", "--state", state) == (
        f"penstock: pipeline 'bills' in {state} has not failed: there is nothing to resume\n"
    )


def test_an_unknown_pipeline_is_refused_and_the_known_ones_are_named(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, "calls", "--state", state) == (
        f"penstock: no pipeline 'calls' has state in {state}, which knows: alerts, bills\n"
    )


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "alerts", "--state", tmp_path / "none")
    assert said.startswith(f"penstock: the state directory must exist, got {tmp_path / 'none'}: ")
