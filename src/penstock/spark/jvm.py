"""The way to the JVM behind a session, which PySpark does not make public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def jvm(session: SparkSession) -> Any:
    """The JVM's classes, by package: `jvm(session).penstock.GrantBook`."""
    return session._jvm


def java_session(session: SparkSession) -> Any:
    return session._jsparkSession


def analysed_plan(frame: DataFrame) -> Any:
    """The logical plan of a DataFrame, analysed."""
    return frame._jdf.queryExecution().analyzed()


def frame_of(java_frame: Any, session: SparkSession) -> DataFrame:
    """A DataFrame around one of the JVM's."""
    from pyspark.sql import DataFrame

    return DataFrame(java_frame, session)


def schema_from_ddl(ddl: str) -> StructType:
    """A schema from text such as "sensor STRING, value DOUBLE"."""
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return schema


def nullable(kind: Any) -> Any:
    """The same type with nulls allowed all the way down."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType([StructField(each.name, nullable(each.dataType)) for each in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(nullable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(nullable(kind.keyType), nullable(kind.valueType))
    return kind
