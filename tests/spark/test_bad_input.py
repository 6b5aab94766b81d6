from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, dead_letters

from penstock import Pipeline, sinks, sources
from penstock.cli.main import main
from penstock.errors import PenstockError
from penstock.spark.feeders import Feeder

pytestmark = pytest.mark.spark
FIELDS = "id BIGINT NOT NULL, value DOUBLE"
BAD = {
    "nonsense": f"not JSON: expected {FIELDS}",
    '{"id": 7, "value": ': f"not JSON: expected {FIELDS}",
    '{"value": 2.5}': "field id is missing: it is NOT NULL",
    '{"id": 8, "value": "high"}': "field value must be DOUBLE, got high",
}


def lines(texts: list[str]) -> pa.Table:
    return pa.table({"value": pa.array(texts, pa.string())})


def test_rows_that_do_not_parse_go_to_the_dead_letters_and_the_others_arrive(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, kept, runs = spool(), Kept(), engine(consumption="at-most-7")
    good = [json.dumps({"id": number, "value": number / 4}) for number in range(20)]
    texts = [*good[:5], *list(BAD)[:2], *good[5:15], *list(BAD)[2:], *good[15:]]
    pipeline = Pipeline("p")
    pipeline.source("lines", sources.FromSpool(source, "value STRING")).parse("parse", FIELDS).operator(
        "twice", lambda frame: frame.selectExpr("id", "value * 2 as value")
    ).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(lines(texts))
    runs.drain()
    reports = {report.stage: report for report in runs.stages()}
    runs.stop()
    assert sorted((row["id"], row["value"]) for row in kept.rows) == [(n, n / 2) for n in range(20)]
    letters = dead_letters(state, "p", "parse")
    assert {letter["raw"]: letter["dead_letter"] for letter in letters} == BAD
    assert len(letters) == len(BAD)
    assert (reports["p.parse"].dead_rows, reports["p.parse"].late_rows) == (4, 0)


def test_dead_letters_of_a_large_turn_are_split_off_too(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    texts = [json.dumps({"id": n, "value": 1.0}) if n % 10 else f"bad {n}" for n in range(30_000)]
    pipeline = Pipeline("p")
    pipeline.source("lines", sources.FromSpool(source, "value STRING")).parse("parse", FIELDS).sink(
        "out", kept.sink
    )
    source.append(lines(texts))
    runs.submit(pipeline)
    runs.drain()
    runs.stop()
    assert kept.column("id") == [n for n in range(30_000) if n % 10]
    letters = dead_letters(state, "p", "parse")
    assert sorted(letter["raw"] for letter in letters) == sorted(f"bad {n}" for n in range(0, 30_000, 10))
    assert {letter["dead_letter"] for letter in letters} == {f"not JSON: expected {FIELDS}"}


def test_an_operator_of_the_users_own_can_put_rows_aside(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    pipeline.source("lines", sources.FromSpool(source, "value STRING")).operator(
        "check",
        lambda frame: frame.selectExpr(
            "length(value) as n",
            "case when length(value) > 3 then 'too long' end as dead_letter",
            "value as raw",
        ),
        dead_letters=True,
    ).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(lines(["a", "abcd", "abc", "abcdef"]))
    runs.drain()
    runs.stop()
    assert kept.rows == [{"n": 1}, {"n": 3}]
    assert dead_letters(state, "p", "check") == [
        {"dead_letter": "too long", "raw": "abcd"},
        {"dead_letter": "too long", "raw": "abcdef"},
    ]


def test_lines_of_a_text_file_are_replayed_and_parsed(engine: EngineFactory, tmp_path: Path) -> None:
    kept, runs = Kept(), engine()
    trace = tmp_path / "trace.txt"
    trace.write_text("".join(json.dumps({"id": n}) + "\n" for n in range(50)) + "oops\n")
    pipeline = Pipeline("p")
    pipeline.source("trace", sources.Replay(trace, rows_per_second=200, loop=False)).parse(
        "parse", "id BIGINT NOT NULL"
    ).sink("out", kept.sink)
    runs.submit(pipeline)
    runs.drain()
    [report] = runs.stages()[:1]
    assert kept.column("id") == list(range(50))
    assert report.dead_rows == 1


def test_dead_letters_can_be_read_while_the_pipeline_runs(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    stream = pipeline.source("lines", sources.FromSpool(source, "value STRING"))
    stream.parse("parse", FIELDS).sink("out", kept.sink)
    runs.submit(pipeline)
    assert runs.dead_letters("p").num_rows == 0
    source.append(lines([*BAD, '{"id": 1}']))
    runs.drain()
    letters = runs.dead_letters("p").to_pylist()
    assert {letter["raw"]: letter["dead_letter"] for letter in letters} == BAD
    assert kept.column("id") == [1]
    assert runs.clear_dead_letters("p") == len(BAD)
    assert runs.dead_letters("p").num_rows == 0


def test_dead_letters_are_cleared_where_a_command_asks_for_it(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    pipeline = Pipeline("p")
    stream = pipeline.source("lines", sources.FromSpool(source, "value STRING"))
    stream.parse("parse", FIELDS).sink("out", kept.sink)
    runs.submit(pipeline)
    source.append(lines(["nonsense"]))
    runs.drain()
    assert main(["dead-letters", "p", "--state", str(state), "--clear"]) == 0
    eventually(lambda: runs.dead_letters("p").num_rows == 0)
    source.append(lines(["more nonsense"]))
    runs.drain()
    assert [letter["raw"] for letter in runs.dead_letters("p").to_pylist()] == ["more nonsense"]
    assert not (state / "p/clear-dead-letters").exists()


def test_a_function_that_exits_stops_its_pipeline_and_frees_its_slot(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, other, kept, runs = spool(), spool("other"), Kept(), engine(slots=1)
    leaves = Pipeline("leaves")
    leaves.source("lines", sources.FromSpool(source, "value STRING")).sink(
        "out", sinks.Callback(lambda table, batch: sys.exit("enough"))
    )
    stays = Pipeline("stays")
    stays.source("lines", sources.FromSpool(other, "value STRING")).sink("out", kept.sink)
    failing = runs.submit(leaves)
    runs.submit(stays)
    source.append(lines(["a"]))
    eventually(lambda: failing.state == "failed")
    assert "enough" in str(failing.error)
    other.append(lines(["b"]))
    eventually(lambda: [row["value"] for row in kept.rows] == ["b"])


def test_a_start_that_fails_leaves_the_spool_to_the_next(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, runs = spool(), Kept(), engine()

    def declared(operator: str) -> Pipeline:
        pipeline = Pipeline("p")
        rows = pipeline.source("lines", sources.FromSpool(source, "value STRING"))
        rows.sink("first", kept.sink)
        rows.operator("o", lambda frame: frame.selectExpr(operator)).queue().sink("out", kept.sink)
        return pipeline

    with pytest.raises(PenstockError):
        runs.submit(declared("nothing like it"))
    shutil.rmtree(runs.state / "p")
    runs.submit(declared("upper(value) as value"))
    source.append(lines(["a"]))
    eventually(lambda: sorted(row["value"] for row in kept.rows) == ["A", "a"])


def test_a_feeder_that_cannot_start_leaves_nothing_behind(
    engine: EngineFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, runs = Kept(), engine()
    pipeline = Pipeline("p")
    rows = pipeline.source("lines", sources.Replay(lines(["a", "b"]), rows_per_second=100, loop=False))
    rows.sink("out", kept.sink)
    with monkeypatch.context() as patched:
        patched.setattr(Feeder, "start", lambda self: (_ for _ in ()).throw(OSError("the disk is full")))
        with pytest.raises(OSError, match="the disk is full"):
            runs.submit(pipeline)
    runs.submit(pipeline)
    eventually(lambda: sorted(row["value"] for row in kept.rows) == ["a", "b"])
