"""A side's process: its events, its failure, and that nothing of it stays. Small workers stand in."""

import os
import time
from pathlib import Path

import pytest

from penstock.workloads import share_process
from penstock.workloads.share_process import SideFailed, SideProcess, run_side
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import SIDES

TELLS = """
import json, os, sys
from pathlib import Path
for event in EVENTS:
    print(json.dumps(event), flush=True)
"""
WITH_A_CHILD = """
import json, os, subprocess, sys, time
child = subprocess.Popen(["sleep", "600"])
print(json.dumps({"event": "child", "pid": child.pid, "folder": os.getcwd()}), flush=True)
time.sleep(600)
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a worker, which a side's process will run."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(share_process, "WORKER", "stand_in_worker")
    return tmp_path / "stand_in_worker.py"


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_run_takes_all_events_until_the_end(worker: Path) -> None:
    worker.write_text(
        TELLS.replace("EVENTS", '[{"event": "started", "at": 5.0}, {"event": "ended", "at": 9.0}]')
    )
    run = run_side(ShareRun(SIDES["spark"], 1.0), 3.0, on_tick=lambda run: None, tick_seconds=0.1)
    assert (run.started_at, run.ended_at, run.measured_from) == (5.0, 9.0, 6.0)


def test_a_side_that_tells_of_an_error_ends_with_it(worker: Path) -> None:
    worker.write_text(TELLS.replace("EVENTS", '[{"event": "failed", "why": "urgent-1: no memory"}]'))
    with pytest.raises(SideFailed) as failed:
        run_side(ShareRun(SIDES["spark"], 1.0), 3.0, on_tick=lambda run: None, tick_seconds=0.1)
    assert str(failed.value) == (
        "the side 'spark' must run to its end, but urgent-1: no memory: there are no figures of it."
    )


def test_a_side_that_ends_early_shows_the_end_of_its_log(worker: Path) -> None:
    worker.write_text("raise SystemExit('no Java here')")
    with pytest.raises(SideFailed) as failed:
        run_side(ShareRun(SIDES["fair"], 1.0), 3.0, on_tick=lambda run: None, tick_seconds=0.1)
    assert str(failed.value) == (
        "the side 'fair' must run to its end, but its process ended early: there are no figures of it.\n"
        "no Java here"
    )


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_closing_a_side_leaves_no_process_and_no_file(worker: Path) -> None:
    worker.write_text(WITH_A_CHILD)
    with SideProcess("spark", 1.0) as process:
        told = next(event for event in process.events(0.1) if event is not None)
        assert _is_running(told["pid"])
    limit = time.monotonic() + 5
    while _is_running(told["pid"]) and time.monotonic() < limit:
        os.sched_yield()
    assert not _is_running(told["pid"])
    assert not Path(told["folder"]).exists()
