"""The body of a request as a table: JSON lines or an Arrow stream."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from penstock.ingest.errors import BadRows

LINES = pa.schema([pa.field("value", pa.string(), False)])
LEAST_BLOCK_BYTES = 1 << 16
_WHERE = re.compile(r"^JSON parse error: |,? in row \d+$")


@dataclass(frozen=True)
class BodyReader:
    """Reads bodies. Without a schema each line is a row, unread, in the one column `value`."""

    schema: pa.Schema | None = None

    @property
    def columns(self) -> pa.Schema:
        """What all tables look like."""
        return LINES if self.schema is None else self.schema

    def lines(self, body: bytes) -> pa.Table:
        """A row for each line that is not blank; BadRows with the number of the first that does not fit."""
        if self.schema is None:
            return _plain(body)
        check_objects(body)
        if not body.strip():
            return self.schema.empty_table()
        try:
            table = _read(body, self.schema)
        except pa.ArrowException:
            raise _first_bad(body, self.schema) from None
        return _checked(table, self.schema, lambda row: _line_of(body, row))

    def arrow(self, body: bytes) -> pa.Table:
        """The rows of an Arrow IPC stream, cast where nothing is lost by it."""
        assert self.schema is not None
        try:
            table = pa.ipc.open_stream(BytesIO(body)).read_all()
            table.validate(full=True)
            names = table.column_names
        except (pa.ArrowException, OSError, ValueError) as error:
            raise BadRows(None, f"it is no whole Arrow stream ({_short(error)})") from None
        missing = [name for name in self.schema.names if names.count(name) != 1]
        if missing:
            raise BadRows(None, f"it must have one column {missing[0]!r}, got {names.count(missing[0])}")
        optional = pa.schema([field.with_nullable(True) for field in self.schema])
        try:
            table = table.select(self.schema.names).cast(optional)
        except pa.ArrowException as error:
            raise BadRows(None, _short(error)) from None
        return _checked(table, self.schema, lambda row: row + 1)


def _plain(body: bytes) -> pa.Table:
    rows = [line for line in body.splitlines() if line.strip()]
    try:
        return pa.Table.from_arrays([pa.array(rows, pa.binary()).cast(pa.string())], schema=LINES)
    except pa.ArrowException:
        raise BadRows(None, "it is no UTF-8 text") from None


def check_objects(body: bytes) -> None:
    """Refuses all but one JSON object on each line.

    Arrow's reader must not see anything else: a line `null` ends the whole process (pyarrow 26.0.1).
    """
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = _DECODER.decode(line.decode())
        except (ValueError, RecursionError) as error:
            raise BadRows(number, f"it is no JSON ({_short(error)})") from None
        if not isinstance(value, dict):
            raise BadRows(number, f"it is no JSON object but {type(value).__name__}")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _read(body: bytes, schema: pa.Schema) -> pa.Table:
    # One block: none of its lines is cut.
    options = pj.ReadOptions(use_threads=False, block_size=max(len(body) + 1, LEAST_BLOCK_BYTES))
    optional = pa.schema([field.with_nullable(True) for field in schema])
    # Arrow reads dates from numbers alone; from text it can cast them.
    readable = pa.schema([pa.field(each.name, _readable(each.type)) for each in optional])
    parsing = pj.ParseOptions(explicit_schema=readable, unexpected_field_behavior="ignore")
    table = pj.read_json(BytesIO(body), options, parsing)
    return table.select(schema.names).cast(optional)


def _readable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _readable(kind.value_type)))
    return pa.string() if pa.types.is_date(kind) else kind


def _first_bad(body: bytes, schema: pa.Schema) -> BadRows:
    """By halves: the first lines up to a bad one are bad together, those before it are good."""
    lines = body.split(b"\n")
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        error = _mistake(b"\n".join(lines[:middle]), schema)
        good, bad = (middle, bad) if error is None else (good, middle)
    return BadRows(bad, _mistake(lines[bad - 1], schema) or "it cannot be read with the lines before it")


def _mistake(part: bytes, schema: pa.Schema) -> str | None:
    if not part.strip():
        return None
    try:
        _read(part, schema)
    except pa.ArrowException as error:
        return _short(error)
    return None


def _short(error: Exception) -> str:
    return _WHERE.sub("", str(error).splitlines()[0])[:200]


def _line_of(body: bytes, row: int) -> int:
    return [number for number, line in enumerate(body.split(b"\n"), 1) if line.strip()][row]


def _checked(table: pa.Table, schema: pa.Schema, line_of: Callable[[int], int]) -> pa.Table:
    """The table, with all that the schema says is NOT NULL."""
    for field in schema:
        column = table[field.name]
        if not field.nullable and column.null_count:
            row = pc.index(column.is_null(), True).as_py()
            raise BadRows(line_of(row), f"field {field.name!r} is missing: it is NOT NULL")
    return pa.Table.from_arrays(table.columns, schema=schema)
