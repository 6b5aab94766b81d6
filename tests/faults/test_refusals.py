"""State that is damaged, foreign or in use is refused in clear words, and goes on once it is mended."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults.flows import Flow, go_on, rows_to_feed
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, from_spool, reading, table

from penstock import Pipeline, Spool
from penstock.errors import PenstockError
from penstock.queues.errors import CorruptSegment
from penstock.queues.journal import CorruptJournal
from penstock.spark.refusals import AnotherVersion, PipelineFailed

pytestmark = pytest.mark.spark

ROWS = rows_to_feed(200)
HALF = 100


@pytest.fixture
def flow(engine: EngineFactory, spool: SpoolFactory, tmp_path: Path) -> Flow:
    """A pipeline that has done half of its rows and was stopped."""
    flow, runs = Flow(spool(), tmp_path / "out"), engine()
    flow.feed(ROWS[:HALF])
    go_on(runs, runs.submit(flow.pipeline()))
    runs.stop()
    return flow


def finishes(flow: Flow, engine: EngineFactory, *, resume: bool = False) -> None:
    """The other half, and all is right."""
    runs = engine()
    flow.feed(ROWS[HALF:])
    go_on(runs, runs.submit(flow.pipeline(), resume=resume))
    flow.check(ROWS)


def refused(flow: Flow, engine: EngineFactory, error: type[Exception], version: str = "1") -> str:
    """The words of the refusal; another pipeline of the same engine runs all the same."""
    runs, kept = engine(), Kept()
    with pytest.raises(error) as raised:
        runs.submit(flow.pipeline(version))
    with Spool(flow.out.parent / "other-input") as source:
        other = Pipeline("other")
        other.source("readings", from_spool(source)).operator("same", lambda rows: rows).sink(
            "out", kept.sink
        )
        runs.submit(other)
        source.append(table([reading(7, 0)]))
        eventually(lambda: kept.column("id") == [7])
        runs.stop()
    return str(raised.value)


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def garble(file: Path) -> None:
    """Another footer of the same length."""
    file.write_bytes(b"x" * file.stat().st_size)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (truncate, r"segment file {file} must have \d+ bytes, got \d+: "),
        (Path.unlink, r"segment file {file} must have \d+ bytes, but is missing: "),
        (garble, r"segment file {file} "),
    ],
    ids=["half-written", "missing", "garbled"],
)
def test_a_damaged_segment_is_refused_by_the_name_of_its_file(
    flow: Flow, state: Path, engine: EngineFactory, damage: Callable[[Path], object], words: str
) -> None:
    queue = state / "p/queues/first"
    with Spool(queue) as spool:
        segment = spool.append(table(ROWS[:3]), producer="test")
    file = queue / segment.files[0]
    kept = file.read_bytes()
    damage(file)
    said = refused(flow, engine, CorruptSegment)
    assert re.match(words.format(file=re.escape(str(file))), said), said
    assert "restore the file" in said
    # Mended by taking it away, as it was never a row of the pipeline's own.
    file.write_bytes(kept)
    next((queue / "segments").glob("*-test-*")).unlink()
    finishes(flow, engine)


def test_a_manifest_cut_short_is_refused_by_its_name(flow: Flow, state: Path, engine: EngineFactory) -> None:
    queue = state / "p/queues/first"
    with Spool(queue) as spool:
        spool.append(table(ROWS[:3]), producer="test")
    manifest = next((queue / "segments").glob("*-test-*"))
    truncate(manifest)
    assert str(manifest) in refused(flow, engine, CorruptSegment)
    manifest.unlink()
    finishes(flow, engine)


def test_what_a_crash_left_half_written_and_unpublished_is_cleared_away(
    flow: Flow, state: Path, engine: EngineFactory
) -> None:
    leftovers = [
        state / "p/queues/first/data/half.parquet",
        state / "p/queues/first/pending/p.first-9.1.tmp",
        state / "p/stages/first/journal.new",
        state / "p/stages/w/scratch/part.parquet",
        flow.out / "each/.p.keep-000000099",
    ]
    for leftover in leftovers:
        leftover.parent.mkdir(parents=True, exist_ok=True)
        leftover.write_bytes(b"half a fi")
    finishes(flow, engine)


@pytest.mark.parametrize("stage", ["first", "w"])
def test_a_corrupt_journal_is_refused(flow: Flow, state: Path, engine: EngineFactory, stage: str) -> None:
    journal = state / "p/stages" / stage / "journal.json"
    kept = journal.read_bytes()
    truncate(journal)
    said = refused(flow, engine, CorruptJournal)
    assert said.startswith(f'the journal {journal} must be JSON as Penstock wrote it, got \'{{"batch": ')
    assert said.endswith("restore the file, or remove the pipeline's state to begin anew")
    journal.write_bytes(kept)
    finishes(flow, engine)


def test_state_of_another_version_is_refused(flow: Flow, state: Path, engine: EngineFactory) -> None:
    said = refused(flow, engine, AnotherVersion, version="2")
    assert said.startswith(
        f"pipeline 'p' must be the one whose state lies in {state / 'p'}, but: version was '1', is '2'. "
        "It is not started: "
    )
    finishes(flow, engine)


@pytest.mark.parametrize("name", ["pipeline.json", "failed.json"])
def test_a_mark_cut_short_is_refused_in_words(
    flow: Flow, state: Path, engine: EngineFactory, name: str
) -> None:
    mark = state / "p" / name
    kept = mark.read_bytes() if mark.exists() else None
    mark.write_text('{"sta')
    said = refused(flow, engine, PenstockError)
    assert str(mark) in said or name == "failed.json"
    if kept is not None:
        mark.write_bytes(kept)
    finishes(flow, engine, resume=kept is None)


def test_a_pipeline_that_failed_is_refused_until_told_to_go_on(
    flow: Flow, state: Path, engine: EngineFactory
) -> None:
    (state / "p/failed.json").write_text('{"stage": "p.w", "reason": "the disk was full", "at": 1}')
    said = refused(flow, engine, PipelineFailed)
    assert said.startswith("pipeline 'p' stopped earlier: the disk was full. Its queues are kept; ")
    finishes(flow, engine, resume=True)


def test_a_checkpoint_that_is_gone_is_refused(flow: Flow, state: Path, engine: EngineFactory) -> None:
    checkpoint = state / "p/stages/w/checkpoint"
    shutil.move(checkpoint, state / "aside")
    runs = engine()
    running = runs.submit(flow.pipeline())
    flow.feed(ROWS[HALF:])
    eventually(lambda: running.state == "failed")
    runs.stop()
    assert str(running.error) == (
        f"query 'p.w' must find its checkpoint in {checkpoint}, which has none: its state is lost; "
        "restore the directory, or remove the pipeline's state to begin anew"
    )
    shutil.rmtree(checkpoint, ignore_errors=True)
    shutil.move(state / "aside", checkpoint)
    runs = engine()
    go_on(runs, runs.submit(flow.pipeline(), resume=True))
    flow.check(ROWS)


def test_a_kill_before_the_first_batch_was_planned_leaves_a_checkpoint_that_starts(
    engine: EngineFactory, spool: SpoolFactory, state: Path, tmp_path: Path
) -> None:
    offsets = state / "p/stages/w/checkpoint/offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.5f2b.tmp").touch()
    (offsets.parent / "metadata").write_text('{"id":"6a0c8f10-5b0c-4d43-9c49-8e1ed8fcd9a9"}')
    flow, runs = Flow(spool(), tmp_path / "out"), engine()
    flow.feed(ROWS)
    go_on(runs, runs.submit(flow.pipeline()))
    flow.check(ROWS)


def test_two_engines_on_one_state_directory_are_refused(engine: EngineFactory, state: Path) -> None:
    engine()
    with pytest.raises(PenstockError) as raised:
        engine()
    assert str(state) in str(raised.value)
    assert f"is in use by process {os.getpid()}" in str(raised.value)
