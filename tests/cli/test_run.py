"""`penstock run`: a file's pipelines under an engine, until they are idle or interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.spark.conftest import eventually

from penstock.cli.main import main

FILE = """
import pyarrow as pa
from pathlib import Path
from penstock import Pipeline, sinks, sources

here = Path(__file__).parent
trace = pa.table({"id": list(range(300))})
p = Pipeline("copy")
rows = p.source("rows", sources.Replay(trace, 1000, loop=LOOP))
rows.operator("twice", FUNCTION).sink("out", sinks.JsonLines(here / "out"), latency="30s")
"""
TWICE = 'lambda d: d.selectExpr("2 * id as id")'
RAISE = 'lambda d: d.selectExpr("raise_error(concat(\\"row \\", id)) as id")'

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `penstock run` on a file; its process goes with the test."""
    started: list[subprocess.Popen[str]] = []

    def go(*arguments: str, loop: bool = False, function: str = TWICE) -> subprocess.Popen[str]:
        file = tmp_path / "flow.py"
        file.write_text(FILE.replace("LOOP", str(loop)).replace("FUNCTION", function))
        command = [sys.executable, "-m", "penstock", "run", str(file), "--state", str(tmp_path / "state")]
        started.append(
            subprocess.Popen(
                [*command, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                env={**os.environ, "COLUMNS": "160"},
            )
        )
        return started[-1]

    yield go
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ids(folder: Path) -> list[int]:
    files = sorted((folder / "out").glob("*.jsonl"))
    return sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines())


@pytest.mark.spark
@pytest.mark.slow
def test_until_idle_plays_the_trace_and_ends(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start("--until-idle", "--slots", "2", "--policy", "longest-queue", "--consumption", "half")
    shown, _ = process.communicate(timeout=120)
    assert process.returncode == 0, shown
    assert ids(tmp_path) == [2 * number for number in range(300)]
    assert "copy running" in shown
    assert "copy.twice" in shown
    assert "p99" in shown
    assert "highest predicted" in shown
    assert main(["explain", "twice", "--state", str(tmp_path / "state")]) == 0
    assert "grant  copy.twice" in capsys.readouterr().out


def watched(state: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `penstock top` shows: as it was a moment ago."""
    assert main(["top", "--state", str(state), "--once"]) == 0
    return capsys.readouterr().out


@pytest.mark.spark
@pytest.mark.slow
def test_it_is_watched_while_it_runs_and_control_c_lets_turns_end_and_fails_no_pipeline(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start("--dashboard", "0", loop=True)
    assert process.stdout is not None
    while not ids(tmp_path):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    eventually(lambda: "copy.twice" in watched(tmp_path / "state", capsys))
    # To the group, as a terminal does it: the JVM gets it too.
    os.killpg(process.pid, signal.SIGINT)
    shown = process.stdout.read()
    assert process.wait(60) == 0, shown
    assert "live page: http://127.0.0.1:" in shown
    assert not (tmp_path / "state/dashboard.json").exists()
    assert "stopping: turns that run end first" in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "state/copy/failed.json").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_a_pipeline_that_fails_is_told_and_refused_until_it_is_resumed(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start("--until-idle", function=RAISE)
    shown, _ = process.communicate(timeout=120)
    assert process.returncode == 1, shown
    assert "pipeline 'copy' failed: operator 'twice' of pipeline 'copy' failed: " in shown
    assert f"penstock resume copy --state {tmp_path / 'state'}" in shown
    assert main(["resume", "copy", "--state", str(tmp_path / "state")]) == 0
    assert "no engine runs on this state directory" in capsys.readouterr().out
    process = start("--until-idle")
    shown, _ = process.communicate(timeout=120)
    assert process.returncode == 0, shown
    assert ids(tmp_path) == [2 * number for number in range(300)]


def test_mistakes_in_the_file_are_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "flow.py").write_text("from penstock import Pipeline\np = Pipeline('p')\n")
    assert main(["run", str(tmp_path / "flow.py"), "--state", str(tmp_path / "state")]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("penstock: pipeline 'p' has 2 mistakes:\n")
    assert shown.out == ""


def test_a_rule_of_consumption_that_does_not_exist_is_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "flow.py"
    file.write_text(FILE.replace("LOOP", "False").replace("FUNCTION", TWICE))
    assert main(["run", str(file), "--consumption", "some", "--state", str(tmp_path / "state")]) == 2
    shown = capsys.readouterr()
    assert "'some'" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("port", ["65536", "-1", "some"])
def test_a_port_must_be_one(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "flow.py", f"--dashboard={port}"])
    assert f"must be a port from 0 to 65535, got {port}" in capsys.readouterr().err


@pytest.mark.parametrize("slots", ["0", "-1", "two"])
def test_slots_must_be_one_or_more(slots: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "flow.py", f"--slots={slots}"])
    assert f"must be 1 or more, got {slots}" in capsys.readouterr().err
