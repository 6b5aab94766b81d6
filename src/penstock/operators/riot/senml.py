"""SenML lines to rows, in Spark SQL alone; bad lines keep their text and a reason.

A line is `timestamp,{"e":[{"n":"temperature","u":"far","v":"8"},...],"bt":1422748800000}`; what stands
before the first brace is not read. `source` is text (`sv`), the rest numbers (`v`), written as JSON strings
or numbers. Of a field that stands twice in a line, one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.riot.rows import CARRIED, PLACE, QUANTITIES, Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DEAD_LETTER, RAW = "dead_letter", "raw"
_NUMBERS = (*PLACE, *QUANTITIES)
# Where each field stands in RIoTBench's traces: looked at there first, searched for only when it is not.
_FIELDS = ("source", *_NUMBERS)
_SCHEMA = (
    "row STRUCT<e: ARRAY<STRUCT<n: STRING, v: STRING, sv: STRING>>, bt: STRING>, end INT, corrupt STRING"
)
_QUOTED_CHARACTERS = 80


def senml_parse(column: str = "value", *, carry: Sequence[str] = CARRIED) -> Transform:
    """ETL's SenMLParse, 1 to 6: one row for each observation of a line.

    They are `source` (its id in `text`) and five quantities (in `value`), each with the line's time (`bt`,
    ms), longitude, latitude and sensor. A line that is no SenML, lacks a field or has one that is no number
    is one row with `dead_letter` and `raw`: declare the operator with dead_letters=True. `carry` are
    columns to keep.
    """
    from pyspark.sql import functions as F

    def parse(rows: DataFrame) -> DataFrame:
        text, none = F.lit(None).cast("string"), F.lit(None).cast("double")
        source = _observation("source", none, F.col("source"))
        observed = [_observation(name, F.col(name), text) for name in QUANTITIES]
        return _observations(_read(rows, column, carry), [source, *observed], carry)

    return parse


def parse_project(column: str = "value", *, carry: Sequence[str] = CARRIED) -> Transform:
    """STATS's ParseProject, 1 to 5: as `senml_parse`, but without the row that holds the source's id."""
    from pyspark.sql import functions as F

    def parse(rows: DataFrame) -> DataFrame:
        text = F.lit(None).cast("string")
        observed = [_observation(name, F.col(name), text) for name in QUANTITIES]
        return _observations(_read(rows, column, carry), observed, carry)

    return parse


def senml_project(column: str = "value", *, carry: Sequence[str] = CARRIED) -> Transform:
    """PRED's SenMLParse, 1 to 1: a wide row with sensor, place, time and the five quantities.

    Bad lines are dead letters, as with `senml_parse`.
    """
    from pyspark.sql import functions as F

    def parse(rows: DataFrame) -> DataFrame:
        read = _read(rows, column, carry)
        return read.select(
            *carry, "time", *PLACE, F.col("source").alias("sensor"), *QUANTITIES, DEAD_LETTER, RAW
        )

    return parse


def _observation(name: str, value: Column, text: Column) -> Column:
    from pyspark.sql import functions as F

    return F.struct(F.lit(name).alias("name"), value.alias("value"), text.alias("text"))


def _observations(read: DataFrame, observed: list[Column], carry: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F

    nothing = _observation("", F.lit(None).cast("double"), F.lit(None).cast("string"))
    # A bad line is one row, whatever a good one becomes.
    each = F.when(F.col(DEAD_LETTER).isNull(), F.array(*observed)).otherwise(F.array(nothing))
    sensor = F.col("source").alias("sensor")
    wide = read.select(*carry, "time", *PLACE, sensor, F.inline(each), DEAD_LETTER, RAW)
    return wide.select(*carry, "time", *PLACE, "sensor", "name", "value", "text", DEAD_LETTER, RAW)


def _read(rows: DataFrame, column: str, carry: Sequence[str]) -> DataFrame:
    """The fields of each line, typed, with `dead_letter` and `raw`, both null where all is well."""
    from pyspark.sql import functions as F

    line = F.col(column).cast("string")
    json = F.substr(line, F.greatest(F.instr(line, "{"), F.lit(1)))
    # Spark stops after the first JSON value: inside an object with a field behind it, a rest is noticed.
    wrapped = F.concat(F.lit('{"row":'), json, F.lit(',"end":1}'))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "corrupt"}
    whole = rows.select(*carry, line.alias(RAW), F.from_json(wrapped, _SCHEMA, options).alias("__read"))
    read = F.col("__read")
    unfit = read.isNull() | read["corrupt"].isNotNull() | read["row"].isNull() | read["end"].isNull()
    texts = [_text(read["row"]["e"], at, name).alias(f"__{name}") for at, name in enumerate(_FIELDS)]
    split = whole.select(*carry, RAW, unfit.alias("__unfit"), read["row"]["bt"].alias("__time"), *texts)
    numbers = [_finite(f"__{name}").alias(name) for name in _NUMBERS]
    # Kept with their texts in a step of its own: the reason below needs both.
    typed = split.select("*", F.col("__time").try_cast("bigint").alias("time"), *numbers)
    reason = _reason(column)
    source = F.nullif(F.col("__source"), F.lit("")).alias("source")
    told = typed.select(*carry, "time", source, *_NUMBERS, reason.alias(DEAD_LETTER), RAW)
    return told.withColumn(RAW, F.when(F.col(DEAD_LETTER).isNotNull(), F.col(RAW)))


def _text(entries: Column, at: int, name: str) -> Column:
    from pyspark.sql import functions as F

    field = "sv" if name == "source" else "v"
    here = F.get(entries, F.lit(at))
    found = F.get(F.filter(entries, lambda entry: entry["n"] == name), F.lit(0))
    return F.when(here["n"] == name, here[field]).otherwise(found[field])


def _finite(column: str) -> Column:
    from pyspark.sql import functions as F

    number = F.col(column).try_cast("double")
    # NaN is greater than all in Spark's order, so that it goes the way of the infinite.
    return F.when(F.abs(number) < float("inf"), number)


def _reason(column: str) -> Column:
    from pyspark.sql import functions as F

    unreadable = F.lit('not SenML: expected timestamp,{"e":[{"n":name,"v":value},...],"bt":milliseconds}')
    source = F.when(F.coalesce(F.col("__source"), F.lit("")) == "", F.lit("field source is missing"))
    wrong = [source, _wrong("__time", "time", "field bt", "a whole number")]
    wrong += [_wrong(f"__{name}", name, f"field {name}", "a number") for name in _NUMBERS]
    return (
        F.when(F.col(RAW).isNull(), F.lit(f"no text: column {column} is null"))
        .when(F.col("__unfit"), unreadable)
        .otherwise(F.coalesce(*wrong))
    )


def _wrong(text: str, value: str, said: str, kind: str) -> Column:
    from pyspark.sql import functions as F

    came = F.substring(F.col(text), 1, _QUOTED_CHARACTERS)
    return F.when(F.col(text).isNull(), F.lit(f"{said} is missing")).when(
        F.col(value).isNull(), F.concat(F.lit(f"{said} must be {kind}, got "), came)
    )
