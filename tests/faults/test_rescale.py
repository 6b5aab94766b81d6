"""Whenever a crash comes in a change of slots: the stage is before it or after it, never between."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.flows import Flow, go_on, rows_to_feed
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually

from penstock import Spool
from penstock.spark.checkpoint import Checkpoint

pytestmark = pytest.mark.spark

ROWS = rows_to_feed()


@pytest.mark.slow
def test_a_driver_killed_while_state_is_divided_loses_and_doubles_nothing(
    engine: EngineFactory, tmp_path: Path
) -> None:
    with Spool(tmp_path / "input") as source:
        Flow(source, tmp_path / "out").feed(ROWS, size=20)
    checkpoint = Checkpoint(tmp_path / "state/p/stages/w/checkpoint")
    worker = subprocess.Popen([sys.executable, "-m", "tests.faults.rescale_worker", str(tmp_path)])
    try:
        eventually(lambda: worker.poll() is not None or checkpoint.unfinished is not None, 120.0)
        assert worker.poll() is None, "it ended by itself"
    finally:
        worker.kill()
        worker.wait()
    with Spool(tmp_path / "input") as source:
        flow, runs = Flow(source, tmp_path / "out"), engine(tmp_path / "state", state_store="rocksdb")
        running = runs.submit(flow.pipeline())
        assert checkpoint.unfinished is None
        assert runs.slots["p.w"] == checkpoint.partitions
        go_on(runs, running)
        flow.check(ROWS)
        runs.stop()


def test_slots_are_kept_over_a_restart_and_a_division_that_was_broken_off_is_finished(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path, state: Path
) -> None:
    flow, runs = Flow(spool(), tmp_path / "out"), engine(state_store="rocksdb")
    flow.feed(ROWS[:150])
    go_on(runs, runs.submit(flow.pipeline()))
    runs.set_slots({"p.w": 2, "p.first": 2})
    runs.stop()
    checkpoint = Checkpoint(state / "p/stages/w/checkpoint")
    divided = max(int(file.name) for file in (checkpoint.path / "commits").iterdir() if file.name.isdigit())
    assert (checkpoint.partitions, checkpoint.unfinished) == (2, None)
    # As a crash in the middle leaves it: without the commit, one piece of state written, and nothing told.
    (checkpoint.path / "commits" / str(divided)).unlink()
    (checkpoint.path / "commits" / f".{divided}.crc").unlink(missing_ok=True)
    shutil.rmtree(checkpoint.path / "state/0/1")
    (state / "p/slots.json").unlink()
    assert checkpoint.unfinished == 2
    runs = engine(state_store="rocksdb")
    running = runs.submit(flow.pipeline())
    assert runs.slots == {"p.first": 1, "p.w": 2, "p.keep": 1}
    flow.feed(ROWS[150:])
    go_on(runs, running)
    flow.check(ROWS)
    runs.set_slots({"p.first": 2})
    runs.stop()
    runs = engine(state_store="rocksdb")
    runs.submit(flow.pipeline())
    assert runs.slots == {"p.first": 2, "p.w": 2, "p.keep": 1}
