"""Columns computed by one of Penstock's Java functions over a large text, which every JVM reads once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.spark.jvm import java_session, jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def once_per_jvm(session: SparkSession, kind: str, lines: Sequence[str]) -> Any:
    """A broadcast of the lines, and the key under which a JVM keeps what `kind` makes of them."""
    text = "\n".join(lines)
    digest = hashlib.sha256(text.encode()).hexdigest()
    broadcast = session.sparkContext._jsc.broadcast(text)
    return jvm(session).penstock.OncePerJvm(f"{kind} {digest}", broadcast)


def called(session: SparkSession, function: Any, returns: str, *columns: Column) -> Column:
    """The Java function of these columns; `returns` is its type, as DDL."""
    from pyspark.sql import Column

    arguments = [column._jc for column in columns]
    return Column(jvm(session).penstock.FunctionOf.columns(function, _java_type(session, returns), arguments))


def called_each_time(
    session: SparkSession, name: str, function: Any, returns: str, *columns: Column
) -> Column:
    """As `called`, for a function of more than its arguments: its call is neither repeated nor moved."""
    from pyspark.sql import Column

    kind, arguments = _java_type(session, returns), [column._jc for column in columns]
    return Column(jvm(session).penstock.FunctionOf.varying(function, name, kind, arguments))


def _java_type(session: SparkSession, ddl: str) -> Any:
    from pyspark.sql.types import DataType

    return java_session(session).parseDataType(DataType.fromDDL(ddl).json())
