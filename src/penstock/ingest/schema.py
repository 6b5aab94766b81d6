"""A schema as DDL for rows that come from outside, without Spark."""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.pipeline.parsing import field_names, split_fields

TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}
_ARRAY = re.compile(r"ARRAY\s*<\s*(\w+)\s*>")


def arrow_schema(ddl: str) -> pa.Schema:
    """The Arrow schema of a DDL string of plain types and arrays of them.

    >>> arrow_schema("id LONG NOT NULL, tags ARRAY<STRING>")
    id: int64 not null
    tags: list<element: string>
      child 0, element: string
    """
    names, fields = field_names(ddl), split_fields(ddl)
    if not names:
        raise PenstockError(f"schema must name at least one field, got {ddl!r}: rows would have no column")
    return pa.schema([_field(name, text) for name, text in zip(names, fields, strict=True)])


def _field(name: str, text: str) -> pa.Field:
    behind = text[len(name) + 2 :] if text.startswith("`") else text[len(name) :]
    kind = behind.lstrip(": ").strip().upper()
    required = kind.endswith("NOT NULL")
    kind = kind.removesuffix("NOT NULL").strip()
    if kind in TYPES:
        return pa.field(name, TYPES[kind], not required)
    array = _ARRAY.fullmatch(kind)
    if array is not None and array[1] in TYPES:
        return pa.field(name, pa.list_(pa.field("element", TYPES[array[1]])), not required)
    raise PenstockError(
        f"field {name!r} must have one of the types {', '.join(TYPES)}, or an ARRAY of one, got {kind!r}: "
        "rows from outside cannot be read as that; take it as STRING and parse it in Spark"
    )
