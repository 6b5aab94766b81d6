"""The SQLite sink: what is stored, and that a turn which runs again stores nothing twice."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.faults.flows import go_on
from tests.faults.test_steps import Tripwire
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import from_spool, readings, table
from tests.spark.test_blame import failed

from penstock import Pipeline, Spool, sinks
from penstock.queues.disk import Disk
from penstock.queues.journal import Journal
from penstock.spark import table_end
from penstock.spark.results import Result
from penstock.spark.stage_base import StageBase
from penstock.spark.table_end import TableEnd, TableError

ROWS = readings(300, seconds=30)


class Rows:
    """A result that is there already."""

    def __init__(self, rows: pa.Table):
        self._rows = rows

    def table(self) -> pa.Table:
        return self._rows


def result(**columns: Any) -> Result:
    return cast("Result", Rows(pa.table(columns)))


def stored(path: Path, query: str = "SELECT * FROM t") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "rows.db"


@pytest.fixture
def end(path: Path, tmp_path: Path) -> TableEnd:
    return TableEnd(sinks.Table(path, "t"), "p.out", tmp_path, Disk())


def insert(end: TableEnd, batch: int = 0, **columns: Any) -> None:
    for output in end.write(result(**columns), batch).outputs:
        end.show(output)


def test_the_table_is_made_from_the_rows_and_every_kind_of_value_is_stored(end: TableEnd, path: Path) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    insert(
        end,
        **{
            "id": [1, None],
            "value": [0.5, None],
            'a "name"': ["text", None],
            "yes": [True, None],
            "at": pa.array([moment, None], pa.timestamp("us", "Asia/Tokyo")),
            "plain": pa.array([moment.replace(tzinfo=None), None], pa.timestamp("us")),
            "day": [date(2026, 1, 2), None],
            "price": [Decimal("1.25"), None],
            "raw": [b"\x00", None],
        },
    )
    assert stored(path) == [
        (
            *(1, 0.5, "text", 1),
            *("2026-01-02T03:04:05.000000+00:00", "2026-01-02T03:04:05.000000", "2026-01-02", 1.25, b"\x00"),
        ),
        (None,) * 9,
    ]
    kinds = [kind for _, _, kind, *_ in stored(path, "PRAGMA table_info(t)")]
    assert kinds == ["INTEGER", "REAL", "TEXT", "INTEGER", "TEXT", "TEXT", "TEXT", "NUMERIC", "BLOB"]
    assert stored(path, "PRAGMA journal_mode") == [("wal",)]


def test_rows_are_seen_only_once_their_turn_is_committed(end: TableEnd, path: Path) -> None:
    [output] = end.write(result(id=[1, 2]), 0).outputs
    assert stored(path) == []
    end.show(output)
    assert stored(path) == [(1,), (2,)]


def test_a_turn_without_rows_makes_nothing(end: TableEnd, path: Path) -> None:
    assert end.write(result(id=pa.array([], pa.int64())), 0).outputs == ()
    assert not path.exists()


def test_what_is_shown_again_after_a_crash_is_not_inserted_twice(
    end: TableEnd, path: Path, tmp_path: Path
) -> None:
    insert(end, 0, id=[1])
    [output] = end.write(result(id=[2, 3]), 1).outputs
    shutil.copy(tmp_path / output["rows"], tmp_path / "kept")
    end.show(output)
    # The crash came after the transaction, before the file was removed.
    shutil.copy(tmp_path / "kept", tmp_path / output["rows"])
    after = TableEnd(sinks.Table(path, "t"), "p.out", tmp_path, Disk())
    after.show(output)
    after.show(output)
    insert(after, 2, id=[4])
    assert stored(path) == [(1,), (2,), (3,), (4,)]
    assert stored(path, "SELECT stage, turn FROM penstock_turns") == [("p.out", 2)]


def test_turns_of_new_state_are_added_to_what_an_older_run_stored(
    end: TableEnd, path: Path, tmp_path: Path
) -> None:
    insert(end, 0, id=[1])
    insert(TableEnd(sinks.Table(path, "t"), "p.out", tmp_path, Disk()), 0, id=[2])
    assert stored(path) == [(1,), (2,)]


def test_a_table_of_the_users_own_keeps_its_further_columns(end: TableEnd, path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, ID INTEGER, note TEXT DEFAULT 'x')")
    insert(end, id=[7, 8])
    assert stored(path) == [(1, 7, "x"), (2, 8, "x")]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            {"id": [1], "value": [2], "unit": ["m"]},
            "must have the columns of the rows, got none for 'value', 'unit': rename it, or name another",
        ),
        (
            {"id": [{"a": 1}]},
            "must be given numbers, text, truth values, bytes or times, got struct<a: int64> in column 'id': "
            "select its parts, or turn it into text",
        ),
    ],
    ids=["other columns", "a struct"],
)
def test_rows_that_do_not_fit_are_refused_before_they_are_committed(
    end: TableEnd, path: Path, columns: dict[str, Any], problem: str
) -> None:
    insert(end, 0, id=[1])
    with pytest.raises(TableError) as caught:
        end.write(result(**columns), 1)
    assert str(caught.value) == f"table 't' of {str(path)!r} {problem}"
    assert stored(path) == [(1,)]


def test_a_locked_database_is_waited_for_and_then_given_up(
    end: TableEnd, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_end, "LOCK_SECONDS", 0.2)
    insert(end, 0, id=[1])
    [output] = end.write(result(id=[2]), 1).outputs
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TableError) as caught:
            end.show(output)
        other.execute("ROLLBACK")
    assert str(caught.value) == (
        f"table 't' of {str(path)!r} must be free within 0.2 s, but another program has locked it: "
        "the pipeline stops, its rows are kept"
    )
    end.show(output)
    assert stored(path) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"table": "t", "batch_rows": 0}, "batch rows must be 1 or more, got 0: no row could be inserted"),
        (
            {"table": "penstock_turns"},
            "a table must have a name that begins neither with 'sqlite_' nor with 'penstock_', "
            "got 'penstock_turns': those are taken",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        sinks.Table("rows.db", **settings)


def storing(source: Spool, path: Path) -> Pipeline:
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator("high", lambda frame: frame.filter("value >= 50"))
    stream.sink("out", sinks.Table(path, "t", batch_rows=7))
    return pipeline


STEPS: dict[str, tuple[type, str]] = {
    "keep": (TableEnd, "write"),
    "commit": (Journal, "write"),
    "insert": (TableEnd, "_insert"),
    "show": (TableEnd, "show"),
    "reveal": (StageBase, "reveal"),
}


@pytest.mark.spark
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_turn_that_breaks_off_anywhere_stores_each_row_once(
    engine: EngineFactory,
    spool: SpoolFactory,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    when: str,
) -> None:
    owner, name = STEPS[step]
    wire = Tripwire(getattr(owner, name), 2, when)
    monkeypatch.setattr(owner, name, lambda *given, **named: wire(*given, **named))
    source, runs = spool(), engine(consumption="at-most-70")
    source.append(table(ROWS))
    assert go_on(runs, runs.submit(storing(source, path))) == 1
    assert wire.tripped
    expected = [row for row in ROWS if row["value"] >= 50]
    found = stored(path, "SELECT id, sensor, value, ts FROM t ORDER BY id")
    assert found == [
        (row["id"], row["sensor"], row["value"], row["ts"].isoformat(timespec="microseconds"))
        for row in expected
    ]
    assert runs.sinks()[0].guarantee == "exactly once"


@pytest.mark.spark
def test_a_stage_with_state_stores_each_row_once_over_a_restart(
    engine: EngineFactory, spool: SpoolFactory, path: Path
) -> None:
    source = spool()
    for start in range(0, 300, 100):
        runs = engine()
        pipeline = Pipeline("p")
        stream = pipeline.source("readings", from_spool(source))
        stream = stream.operator("once", lambda frame: frame.dropDuplicates(["id"]), stateful=True)
        stream.sink("out", sinks.Table(path, "t"))
        runs.submit(pipeline)
        source.append(table(ROWS[start : start + 100]))
        runs.drain()
        runs.stop()
    assert Counter(stored(path, "SELECT id FROM t")) == Counter((row["id"],) for row in ROWS)


@pytest.mark.spark
def test_a_table_that_does_not_fit_stops_the_pipeline_which_goes_on_once_it_does(
    engine: EngineFactory, spool: SpoolFactory, path: Path
) -> None:
    source, runs = spool(), engine()
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (id INTEGER, sensor TEXT)")
        source.append(table(ROWS))
        running = runs.submit(storing(source, path))
        assert str(failed(runs)).endswith(
            "must have the columns of the rows, got none for 'value', 'ts': rename it, or name another"
        )
        database.execute("DROP TABLE t")
    runs.resume("p")
    runs.drain()
    assert running.state == "running"
    assert stored(path, "SELECT count(*) FROM t") == [(sum(row["value"] >= 50 for row in ROWS),)]


def test_a_decimal_keeps_all_its_digits(end: TableEnd, path: Path) -> None:
    insert(end, price=[Decimal("12345678901234567.89")])
    assert stored(path) == [("12345678901234567.89",)]
