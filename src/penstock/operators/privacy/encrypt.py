"""Encryption of columns, which only those with the key can undo, and only unchanged and in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from penstock.operators.java_functions import called_each_time
from penstock.operators.privacy.columns import ColumnError, bytes_of, existing, quoted
from penstock.operators.privacy.keys import Keys
from penstock.operators.transform import DEAD_LETTER, RAW, Transform
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Unreadable = Literal["dead letter", "null"]
_OPENED = "__opened "
_ALL = 2**31 - 1


def encrypt(columns: str | Sequence[str], keys: Keys) -> Transform:
    """The columns' values become text in base64: AES-256-GCM with the current key, a fresh nonce for each.

    Numbers, dates and timestamps are encrypted as text; `decrypt` is told their types. Null stays null. The
    length of a value can be seen, and equal values cannot.
    """
    names = _names(columns, "encrypt")

    def seal(rows: DataFrame) -> DataFrame:
        session, place = rows.sparkSession, keys.place(rows.sparkSession)
        made = {}
        for name in names:
            function = jvm(session).penstock.Encrypt(place, name)
            value = bytes_of(rows, name, "encrypt")
            made[name] = called_each_time(session, "encrypt", function, "STRING", value)
        return rows.withColumns(made)

    return seal


def decrypt(
    columns: str | Sequence[str] | Mapping[str, str], keys: Keys, *, unreadable: Unreadable = "dead letter"
) -> Transform:
    """The columns' values as they were before `encrypt`: text, or of the types given as {"age": "INT"}.

    A column must have the name that it was encrypted under. A value that was changed, cut or moved from
    another column, or whose key is not in the ring, is a dead letter: declare the operator with
    dead_letters=True. `raw` then has the row as it came, and all columns are null. With unreadable="null" it
    is null, and no columns are added.
    """
    types = (
        dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(_names(columns, "decrypt"), "STRING")
    )
    _names(list(types), "decrypt")
    if unreadable not in get_args(Unreadable):
        raise ColumnError(
            f"decrypt: unreadable must be 'dead letter' or 'null', got {unreadable!r}: "
            "what becomes of such values would be left to chance"
        )

    def open_up(rows: DataFrame) -> DataFrame:
        opened = _opened(rows, list(types), keys)
        values = {name: _value(name, kind) for name, kind in types.items()}
        if unreadable == "null":
            return opened.select(*_with(rows, values))
        return _with_dead_letters(rows, opened, values, types)

    return open_up


def _names(columns: str | Sequence[str], operator: str) -> list[str]:
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names or len(set(names)) < len(names):
        raise ColumnError(
            f"{operator}: columns must be one or more, each named once, got {names}: "
            "it is not clear what to protect"
        )
    return names


def _opened(rows: DataFrame, names: Sequence[str], keys: Keys) -> DataFrame:
    """In a step of its own, so that each value is decrypted once."""
    from pyspark.sql.types import StringType

    session, place = rows.sparkSession, keys.place(rows.sparkSession)
    made = {}
    for name in names:
        value, kind = existing(rows, name, "decrypt"), rows.schema[name].dataType
        if not isinstance(kind, StringType):
            raise ColumnError(
                f"decrypt: column {name!r} must be text, got {kind.simpleString().upper()}: "
                "encrypt did not make it"
            )
        function = jvm(session).penstock.Decrypt(place, name)
        made[_OPENED + name] = called_each_time(session, "decrypt", function, "BINARY", value)
    return rows.withColumns(made)


def _with_dead_letters(
    rows: DataFrame, opened: DataFrame, values: Mapping[str, Column], types: Mapping[str, str]
) -> DataFrame:
    from pyspark.sql import functions as F

    reason = F.coalesce(*(_reason(name, values[name], types[name]) for name in types))
    told = opened.withColumn(DEAD_LETTER, reason)
    is_good = F.col(DEAD_LETTER).isNull()
    # As the rows came: what could be decrypted of a bad row must not leave with its dead letter.
    raw = F.when(~is_good, F.to_json(F.struct(*(quoted(name) for name in rows.columns))))
    kept = {name: F.when(is_good, value) for name, value in values.items()}
    return told.select(*_with(rows, kept), DEAD_LETTER, raw.alias(RAW))


def _with(rows: DataFrame, values: Mapping[str, Column]) -> list[Column]:
    return [values.get(name, quoted(name)).alias(name) for name in rows.columns]


def _is_open(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.substring(quoted(_OPENED + name), 1, 1) == F.lit(b"\0")


def _value(name: str, kind: str) -> Column:
    """The decrypted value in its type; null where it cannot be had."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType, DataType, StringType, TimestampType

    plain = F.when(_is_open(name), F.substring(quoted(_OPENED + name), 2, _ALL))
    wanted = DataType.fromDDL(kind)
    if isinstance(wanted, BinaryType):
        return plain
    text = plain.cast("string")
    if isinstance(wanted, StringType):
        return text
    if isinstance(wanted, TimestampType):
        return F.timestamp_micros(text.try_cast("bigint"))
    return text.try_cast(wanted)


def _reason(name: str, value: Column, kind: str) -> Column:
    from pyspark.sql import functions as F

    opened = quoted(_OPENED + name)
    refused = F.substring(opened, 2, _ALL).cast("string")
    unfit = F.lit(f"column {name} was decrypted, but is no {kind}")
    return F.when(~_is_open(name), refused).when(opened.isNotNull() & value.isNull(), unfit)
