"""Columns that privacy operators take and give: checks, and values as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class ColumnError(PenstockError):
    """A column that an operator cannot work on."""


def existing(rows: DataFrame, name: str, operator: str) -> Column:
    """The column of exactly this name: in what is encrypted, names are told apart by case."""
    if name not in rows.columns:
        raise ColumnError(
            f"{operator}: column {name!r} must be there, got {', '.join(rows.columns)}: "
            "nothing would be protected"
        )
    return quoted(name)


def quoted(name: str) -> Column:
    """A column by its whole name, dots included."""
    from pyspark.sql import functions as F

    return F.col(f"`{name.replace('`', '``')}`")


def replacing(rows: DataFrame, column: str, into: str | None, operator: str) -> str:
    """Where the result goes: over the column itself, or into a new one beside it."""
    if into is not None and into in rows.columns:
        raise ColumnError(
            f"{operator}: into must name a new column, got {into!r}, which is there: it would be lost"
        )
    return column if into is None else into


def is_time(rows: DataFrame, name: str) -> bool:
    """Whether there is such a column, and it is a TIMESTAMP."""
    from pyspark.sql.types import TimestampType

    return name in rows.columns and isinstance(rows.schema[name].dataType, TimestampType)


def time_of(rows: DataFrame, name: str, operator: str) -> Column:
    """Microseconds since 1970 of a TIMESTAMP column."""
    from pyspark.sql import functions as F

    column = existing(rows, name, operator)
    if not is_time(rows, name):
        kind = rows.schema[name].dataType.simpleString().upper()
        raise ColumnError(
            f"{operator}: column {name!r} must be a TIMESTAMP, got {kind}: its moments are not known"
        )
    return F.unix_micros(column)


def bytes_of(rows: DataFrame, name: str, operator: str) -> Column:
    """A column's values as bytes: of text and of what has one text, whatever the session's time zone."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    column = existing(rows, name, operator)
    kind = rows.schema[name].dataType
    if isinstance(kind, T.BinaryType):
        return column
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column).cast("string").cast("binary")
    if isinstance(kind, T.StringType | T.VarcharType | T.CharType):
        return column.cast("binary")
    if isinstance(kind, T.NumericType | T.BooleanType | T.DateType):
        return column.cast("string").cast("binary")
    raise ColumnError(
        f"{operator}: column {name!r} must be text, binary, a number, BOOLEAN, DATE or TIMESTAMP, got "
        f"{kind.simpleString().upper()}: it has no one text. Make one, with to_json for example"
    )
