"""A queue that is a Kafka topic: an operator above writes rows into it, one below reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.pipeline.nodes import Operator
from penstock.pipeline.sinks import Kafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

# Spark by itself writes milliseconds, and would lose the rest.
FORM = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
EXACT = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string"),
    *("binary", "date", "timestamp", "timestamp_ntz"),
)


def halves(name: str, topic: Kafka, parallelism: int) -> tuple[Operator, Operator]:
    """The operators at both sides of a topic that the rows of `name` go through."""
    settings = (("topic", str(topic.topic)),)
    above = Operator(
        f"{name}-out", "to_topic", (name,), as_records, parallelism, settings=settings, topic=topic
    )
    below = Operator(f"{name}-in", "from_topic", (above.name,), _same, parallelism, settings=settings)
    return above, below


def topic_mistake(topic: object) -> str | None:
    """What is wrong with what a queue is to go through, if anything."""
    if not isinstance(topic, Kafka):
        return f"it must go through a sinks.Kafka, got {type(topic).__name__}: nothing could be read from it"
    if topic.topic is None:
        return "its topic must be named, got none: what one stage writes another could not find"
    return None


def as_records(rows: DataFrame) -> DataFrame:
    """Each row as JSON, in the column that a topic keeps; refused where JSON would not hold it exactly."""
    from pyspark.sql import functions as F

    for column in rows.schema:
        if (inexact := _inexact(column.dataType)) is not None:
            raise ValueError(
                f"a queue through a topic must have columns that JSON holds exactly, got {column.name!r} "
                f"with {inexact}: cast it before, or use a queue() without a topic"
            )
    return rows.select(F.to_json(F.struct("*"), {**FORM, "ignoreNullFields": "false"}).alias("value"))


def from_records(records: DataFrame, schema: StructType) -> DataFrame:
    """The rows that `as_records` was given; a record of another kind is an error, never a row of nulls."""
    from pyspark.sql import functions as F

    read = F.from_json(F.col("value").cast("string"), schema, {**FORM, "mode": "FAILFAST"})
    return records.select(read.alias("row")).select("row.*")


def _inexact(kind: DataType) -> str | None:
    """The first part of a type that would not come back as it was."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StringType, StructType

    if isinstance(kind, StructType):
        return next((part for field in kind if (part := _inexact(field.dataType))), None)
    if isinstance(kind, ArrayType):
        return _inexact(kind.elementType)
    if isinstance(kind, MapType):
        return _inexact(kind.valueType) if isinstance(kind.keyType, StringType) else kind.simpleString()
    exact = isinstance(kind, DecimalType) or kind.simpleString() in EXACT
    return None if exact else kind.simpleString()


def _same(rows: Any) -> Any:
    return rows
