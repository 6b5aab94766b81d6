"""A full disk stops a pipeline in clear words, or its producer waits; with space again no row is missing."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.flows import Flow, at_rest, go_on, rows_to_feed
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import json_rows, table

from penstock import Pipeline, sinks, sources

pytestmark = pytest.mark.spark

ROWS = rows_to_feed()


class SmallDisk:
    """A file system of its own, 4 MB."""

    def __init__(self, path: Path):
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Leaves not a byte."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"\0" * size)

    def free(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "penstock-test", str(path)]
    try:
        made = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("a small file system can be mounted by root alone")
    yield SmallDisk(path)
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def state(disk: SmallDisk) -> Path:
    """The state of every engine here lies on the small disk, and engines stop before it goes."""
    return disk.path / "state"


def test_a_pipeline_whose_state_finds_no_space_stops_in_clear_words_and_goes_on_with_it(
    engine: EngineFactory, spool: SpoolFactory, disk: SmallDisk, tmp_path: Path
) -> None:
    flow, runs = Flow(spool(), tmp_path / "out"), engine(consumption="at-most-70")
    flow.feed(ROWS[:200])
    running = runs.submit(flow.pipeline())
    go_on(runs, running)
    disk.fill()
    flow.feed(ROWS[200:])
    at_rest(running)
    assert running.state == "failed"
    assert "the disk is full" in str(running.error) or "No space left on device" in str(running.error)
    disk.free()
    runs.resume("p")
    go_on(runs, running)
    flow.check(ROWS)


@pytest.mark.parametrize("after", [0, 3, 7, 12])
def test_a_disk_that_fills_up_in_the_middle_of_turns_costs_no_row(
    engine: EngineFactory, spool: SpoolFactory, disk: SmallDisk, tmp_path: Path, after: int
) -> None:
    flow, runs = Flow(spool(), tmp_path / "out"), engine(consumption="at-most-30")
    flow.feed(ROWS)
    running = runs.submit(flow.pipeline())
    eventually(lambda: sum(stage.figures.total_turns for stage in runs.stages()) >= after)
    disk.fill()
    at_rest(running)
    disk.free()
    go_on(runs, running)
    flow.check(ROWS)


def test_an_engine_that_starts_on_a_full_disk_after_a_failure_loses_nothing(
    engine: EngineFactory, spool: SpoolFactory, disk: SmallDisk, tmp_path: Path
) -> None:
    flow, runs = Flow(spool(), tmp_path / "out"), engine()
    flow.feed(ROWS[:200])
    go_on(runs, runs.submit(flow.pipeline()))
    runs.stop()
    disk.fill()
    flow.feed(ROWS[200:])
    runs = engine()
    running = runs.submit(flow.pipeline(), resume=True)
    at_rest(running)
    assert running.state == "failed"
    runs.stop()
    disk.free()
    runs = engine()
    go_on(runs, runs.submit(flow.pipeline(), resume=True))
    flow.check(ROWS)


def test_a_replay_waits_for_space_and_says_so(
    engine: EngineFactory, disk: SmallDisk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trace = table(ROWS[:300])
    pipeline = Pipeline("p")
    replay = sources.Replay(trace, 300, loop=False)
    same = pipeline.source("readings", replay).operator("same", lambda rows: rows.select("id"))
    same.sink("out", sinks.JsonLines(tmp_path / "out"))
    runs = engine()
    with caplog.at_level(logging.WARNING, logger="penstock"):
        running = runs.submit(pipeline)
        eventually(lambda: bool(json_rows(tmp_path / "out")))
        disk.fill()
        eventually(lambda: running.state == "failed" or "the disk is full" in caplog.text)
    disk.free()
    go_on(runs, running)
    assert sorted(row["id"] for row in json_rows(tmp_path / "out")) == [row["id"] for row in ROWS[:300]]


def test_a_sink_that_finds_no_space_stops_its_pipeline_and_writes_each_row_once_later(
    engine: EngineFactory, spool: SpoolFactory, disk: SmallDisk, tmp_path: Path
) -> None:
    flow = Flow(spool(), disk.path / "out")
    runs = engine(state=tmp_path / "elsewhere", consumption="at-most-70")
    flow.feed(ROWS[:200])
    running = runs.submit(flow.pipeline())
    go_on(runs, running)
    disk.fill()
    flow.feed(ROWS[200:])
    at_rest(running)
    assert running.state == "failed"
    assert "No space left on device" in str(running.error)
    assert os.path.exists(tmp_path / "elsewhere/p/failed.json")
    disk.free()
    go_on(runs, running)
    flow.check(ROWS)
