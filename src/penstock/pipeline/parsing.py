"""Text to typed columns, in Spark SQL alone; rows that do not parse keep their text and a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

TextFormat = Literal["json", "csv"]
DEAD_LETTER, RAW = "dead_letter", "raw"
_CORRUPT = "__corrupt"
_QUOTED_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Parsing:
    """How a column of text becomes the fields of `schema`, a DDL string.

    A field that the schema says is NOT NULL must be there; any other may be missing. `keep` names columns
    that stay beside them.
    """

    schema: str
    column: str
    format: TextFormat
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.format not in get_args(TextFormat):
            raise ValueError(f"format must be 'json' or 'csv', got {self.format!r}: nothing reads such text")
        names = [name.lower() for name in field_names(self.schema)]
        if not names:
            raise ValueError(
                f"schema must name at least one field, got {self.schema!r}: rows would have no column"
            )
        for name in names:
            if name in (DEAD_LETTER, RAW):
                raise ValueError(
                    f"schema must not have a field {name!r}: rows that do not parse use that column"
                )
            if name in map(str.lower, self.keep):
                raise ValueError(f"schema and keep must name a column once, got {name!r} in both")
            if names.count(name) > 1:
                raise ValueError(f"schema must name a field once, got {name!r} {names.count(name)} times")


def field_names(schema: str) -> list[str]:
    """Names of the top-level fields of a DDL string, without Spark.

    >>> field_names("sensor STRING NOT NULL, `a, b` MAP<STRING, INT>, d DECIMAL(9, 2)")
    ['sensor', 'a, b', 'd']
    """
    return [_first_word(field) for field in split_fields(schema)]


def split_fields(schema: str) -> list[str]:
    """The top-level fields of a DDL string, each as it stands there."""
    fields, depth, quoted = [""], 0, False
    for character in schema:
        quoted ^= character == "`"
        depth += 0 if quoted else (character in "<(") - (character in ">)")
        if character == "," and not quoted and depth == 0:
            fields.append("")
        else:
            fields[-1] += character
    return [field.strip() for field in fields if field.strip()]


def _first_word(field: str) -> str:
    if field.startswith("`"):
        return field[1 : field.index("`", 1)] if "`" in field[1:] else field[1:]
    return field.replace(":", " ").split()[0]


def parse_function(parsing: Parsing) -> Callable[[DataFrame], DataFrame]:
    """A function whose result has the schema's fields, `dead_letter` (null where all is well) and `raw`."""

    def parse_text(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        schema = StructType.fromDDL(parsing.schema)
        if not isinstance(schema, StructType):
            raise ValueError(
                f"schema must be fields with types, got {parsing.schema!r}: rows would have no column"
            )
        text = rows.select(*parsing.keep, F.col(parsing.column).cast("string").alias(RAW))
        read = text.select(*parsing.keep, RAW, _read(parsing, schema).alias("__read"))
        row = _Row(F.col("__read"), parsing.format)
        fields = [row.field(name).alias(name) for name in schema.names]
        return read.select(*parsing.keep, *fields, _reason(parsing, schema, row).alias(DEAD_LETTER), RAW)

    return parse_text


def _read(parsing: Parsing, schema: StructType) -> Column:
    """The text read as `schema`: a struct with the text itself in one more field where it does not fit."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    # Spark reads required fields as if they were optional; `_reason` looks for the missing ones.
    fields = StructType([StructField(field.name, field.dataType) for field in schema])
    corrupt = StructField(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if parsing.format == "csv":
        return F.from_csv(F.col(RAW), _ddl(StructType([*fields, corrupt])), options)
    # Spark stops after the first JSON value, and what stands behind it would be lost in silence.
    # Inside an object with a field behind it, such text no longer parses, or `end` is not found.
    wrapped = F.concat(F.lit('{"row":'), F.col(RAW), F.lit(',"end":1}'))
    ends = StructField("end", IntegerType())
    return F.from_json(wrapped, StructType([StructField("row", fields), ends, corrupt]), options)


def _ddl(schema: StructType) -> str:
    # from_csv takes its schema as text only.
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema)


@dataclass(frozen=True)
class _Row:
    """What `_read` gave, whichever the format."""

    read: Column
    format: TextFormat

    def field(self, name: str) -> Column:
        return (self.read if self.format == "csv" else self.read.getField("row")).getField(name)

    @property
    def unfit(self) -> Column:
        corrupt = self.read.isNull() | self.read.getField(_CORRUPT).isNotNull()
        if self.format == "csv":
            return corrupt
        return corrupt | self.read.getField("row").isNull() | self.read.getField("end").isNull()


def _reason(parsing: Parsing, schema: StructType, row: _Row) -> Column:
    """Why the row is bad, or null; the text is read a second time, as strings, for bad rows only."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    strings = StructType([StructField(field.name, StringType()) for field in schema])
    text = _Row(_read(parsing, strings), parsing.format)
    wrong = [_wrong_type(field, row, text) for field in schema]
    missing = [_missing(field, row) for field in schema if not field.nullable]
    unreadable = F.lit(f"not {parsing.format.upper()}: expected {parsing.schema}")
    elsewhere = F.lit(f"a value inside a field has the wrong type: expected {parsing.schema}")
    return (
        F.when(F.col(RAW).isNull(), F.lit(f"no text: column {parsing.column} is null"))
        .when(F.trim(F.col(RAW)) == "", unreadable)
        .when(row.unfit & text.unfit, unreadable)
        .when(row.unfit, F.coalesce(*wrong, elsewhere))
        .otherwise(F.coalesce(*missing, F.lit(None).cast("string")))
    )


def _wrong_type(field: StructField, row: _Row, text: _Row) -> Column:
    from pyspark.sql import functions as F

    came = text.field(field.name)
    said = F.concat(
        F.lit(f"field {field.name} must be {field.dataType.simpleString().upper()}, got "),
        F.substring(came, 1, _QUOTED_CHARACTERS),
    )
    return F.when(row.field(field.name).isNull() & came.isNotNull(), said)


def _missing(field: StructField, row: _Row) -> Column:
    from pyspark.sql import functions as F

    return F.when(row.field(field.name).isNull(), F.lit(f"field {field.name} is missing: it is NOT NULL"))
