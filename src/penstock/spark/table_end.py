"""The end in a table of an SQLite database."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.pipeline.sinks import Table
from penstock.queues.disk import Disk
from penstock.spark.ends import Output, Written
from penstock.spark.results import Result

LOCK_SECONDS = 10.0
# What is inserted is known by a token, not by the number of its turn: numbers begin anew with new state.
TURNS = "penstock_turns"
_MAKE_TURNS = f"CREATE TABLE IF NOT EXISTS {TURNS} (token TEXT PRIMARY KEY, stage TEXT, turn INTEGER)"


class TableError(PenstockError):
    """A table that cannot take the rows."""

    def __init__(self, spec: Table, problem: str):
        super().__init__(f"table {spec.table!r} of {str(spec.path)!r} {problem}")


class TableEnd:
    """Keeps a turn's rows in a file until the turn is committed, then inserts them in one transaction.

    The same transaction stores the turn's token, by which a second one knows that nothing is left to do.
    """

    shows: ClassVar[str | None] = "rows"

    def __init__(self, spec: Table, stage: str, folder: Path, disk: Disk):
        self._spec = spec
        self._stage = stage
        self._folder = folder
        self._disk = disk
        self._checked: pa.Schema | None = None
        self._last_token = ""

    def write(self, result: Result, batch: int) -> Written:
        rows = result.table()
        name = f"rows-{batch:09d}.arrow"
        if rows.num_rows == 0:
            # A turn that was broken off before may have left some.
            (self._folder / name).unlink(missing_ok=True)
            return Written(0)
        self._check(rows.schema)
        # Before the turn is committed: a value that SQLite cannot take must not be found out after it.
        self._values(rows)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema) as file:
            file.write_table(rows)
        self._disk.write(self._folder / name, memoryview(sink.getvalue()))
        output = {"rows": name, "turn": batch, "token": uuid.uuid4().hex, "from": str(self._folder / name)}
        return Written(rows.num_rows, (output,))

    def show(self, output: Output) -> None:
        path = self._folder / output["rows"]
        if not path.exists():
            # The file goes only after its rows are in the table.
            self._last_token = output["token"]
            return
        rows = pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all()
        # After a restart the database may be another one.
        self._check(rows.schema)
        with self._transaction() as database:
            known = database.execute(f"SELECT 1 FROM {TURNS} WHERE token = ?", [output["token"]])
            if known.fetchone() is None:
                self._insert(database, rows)
                database.execute(
                    f"INSERT INTO {TURNS} VALUES (?, ?, ?)", [output["token"], self._stage, output["turn"]]
                )
                database.execute(f"DELETE FROM {TURNS} WHERE token = ?", [self._last_token])
        self._last_token = output["token"]
        path.unlink()

    def _insert(self, database: sqlite3.Connection, rows: pa.Table) -> None:
        names = ", ".join(map(_quoted, rows.column_names))
        places = ", ".join("?" * rows.num_columns)
        statement = f"INSERT INTO {_quoted(self._spec.table)} ({names}) VALUES ({places})"
        values = self._values(rows)
        for start in range(0, len(values), self._spec.batch_rows):
            database.executemany(statement, values[start : start + self._spec.batch_rows])

    def _values(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        try:
            return list(zip(*(_plain(column) for column in rows.columns), strict=True))
        except (ValueError, OverflowError, pa.ArrowException) as error:
            raise self._error(
                f"must be given values that SQLite can hold, but {error}: filter them out"
            ) from error

    def _check(self, schema: pa.Schema) -> None:
        """Before the turn is committed: the table is there, and has the columns of the rows."""
        if self._checked == schema:
            return
        columns = [(field.name, self._declared(field)) for field in schema]
        Path(self._spec.path).absolute().parent.mkdir(parents=True, exist_ok=True)
        with self._transaction() as database:
            database.execute(_MAKE_TURNS)
            known = self._columns(database)
            if not known:
                listed = ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns)
                database.execute(f"CREATE TABLE {_quoted(self._spec.table)} ({listed})")
            elif missing := [name for name, _ in columns if name.lower() not in known]:
                raise self._error(
                    f"must have the columns of the rows, got none for {', '.join(map(repr, missing))}: "
                    "rename it, or name another"
                )
        self._checked = schema

    def _columns(self, database: sqlite3.Connection) -> set[str]:
        rows = database.execute(f"PRAGMA table_info({_quoted(self._spec.table)})")
        return {name.lower() for _, name, *_ in rows}

    def _declared(self, field: pa.Field) -> str:
        for belongs, kind in _KINDS:
            if any(test(field.type) for test in belongs):
                return kind
        raise self._error(
            f"must be given numbers, text, truth values, bytes or times, got {field.type} "
            f"in column {field.name!r}: select its parts, or turn it into text"
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Opened for each: turns run in any thread, and one costs half a millisecond."""
        try:
            with closing(sqlite3.connect(self._spec.path, LOCK_SECONDS, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute(f"PRAGMA synchronous = {'FULL' if self._disk.fsync else 'NORMAL'}")
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise self._error(
                    f"must be free within {LOCK_SECONDS:g} s, but another program has locked it: "
                    "the pipeline stops, its rows are kept"
                ) from error
            raise self._error(
                f"could not be written ({error}): the pipeline stops, its rows are kept"
            ) from error

    def _error(self, problem: str) -> TableError:
        return TableError(self._spec, problem)


_TYPES = pa.types
EXACT_DIGITS = 15
"""SQLite keeps no more of a number with a fraction: decimals that may have more are text."""
_KINDS: Sequence[tuple[Sequence[Any], str]] = (
    ((_TYPES.is_integer, _TYPES.is_boolean), "INTEGER"),
    ((_TYPES.is_floating,), "REAL"),
    ((lambda kind: _TYPES.is_decimal(kind) and kind.precision <= EXACT_DIGITS,), "NUMERIC"),
    (
        (_TYPES.is_decimal, _TYPES.is_string, _TYPES.is_large_string, _TYPES.is_timestamp, _TYPES.is_date),
        "TEXT",
    ),
    ((_TYPES.is_binary, _TYPES.is_large_binary), "BLOB"),
)


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """A column as SQLite takes it."""
    kind = column.type
    if _TYPES.is_timestamp(kind):
        # Python has no nanoseconds; times of any zone are written in UTC.
        moments = column.cast(pa.timestamp("us", "UTC" if kind.tz else None), safe=False).to_pylist()
        return [None if each is None else each.isoformat(timespec="microseconds") for each in moments]
    if _TYPES.is_date(kind) or _TYPES.is_decimal(kind):
        return [None if each is None else str(each) for each in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]


def _quoted(name: str) -> str:
    """A name as it stands in SQL."""
    return '"' + name.replace('"', '""') + '"'
