"""SenML lines to rows, in Spark SQL alone; bad lines keep their text and a reason.

A line is `timestamp,{"e":[{"n":"temperature","u":"far","v":"8"},...],"bt":1422748800000}`; what stands
before the first brace is not read. `source` is text (`sv`), the rest numbers (`v`), written as JSON strings
or numbers. Of a field that stands twice in a line, one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.riot.rows import CARRIED, PLACE, QUANTITIES
from penstock.operators.transform import DEAD_LETTER, RAW, Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NUMBERS = (*PLACE, *QUANTITIES)
# In the order of RIoTBench's traces: only where it is another are the fields searched for.
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
    """The fields of each line, typed, with `dead_letter` and `raw`, both null where all is well.

    Expressions over whole arrays instead of one for each field: Spark plans them anew at every turn.
    """
    from pyspark.sql import functions as F

    line = F.col(column).cast("string")
    json = F.substr(line, F.greatest(F.instr(line, "{"), F.lit(1)))
    # Spark stops after the first JSON value: inside an object with a field behind it, a rest is noticed.
    wrapped = F.concat(F.lit('{"row":'), json, F.lit(',"end":1}'))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "corrupt"}
    whole = rows.select(*carry, line.alias(RAW), F.from_json(wrapped, _SCHEMA, options).alias("__read"))
    read = F.col("__read")
    unfit = read["corrupt"].isNotNull() | read["row"].isNull() | read["end"].isNull()
    time, entries = read["row"]["bt"].alias("__time"), _in_order(read["row"]["e"]).alias("__entries")
    split = whole.select(*carry, RAW, F.coalesce(unfit, F.lit(True)).alias("__unfit"), time, entries)
    source = F.get("__entries", F.lit(0))["sv"].alias("source")
    numbers = [_number(at).alias(name) for at, name in enumerate(_NUMBERS, 1)]
    millis = F.col("__time").try_cast("bigint").alias("time")
    typed = split.select("*", millis, source, *numbers)
    told = typed.select(*carry, "time", "source", *_NUMBERS, _reason(column).alias(DEAD_LETTER), RAW)
    return told.withColumn(RAW, F.when(F.col(DEAD_LETTER).isNotNull(), F.col(RAW)))


def _in_order(entries: Column) -> Column:
    """The entries in the order of `_FIELDS`, as RIoTBench writes them; null for one that is not there."""
    from pyspark.sql import functions as F

    names = F.array(*map(F.lit, _FIELDS))
    found = F.transform(
        names, lambda name: F.get(F.filter(entries, lambda each: each["n"] == name), F.lit(0))
    )
    return F.when(entries["n"] == names, entries).otherwise(found)


def _number(at: int) -> Column:
    from pyspark.sql import functions as F

    return F.get("__entries", F.lit(at))["v"].try_cast("double")


def _reason(column: str) -> Column:
    from pyspark.sql import functions as F

    unreadable = F.lit('not SenML: expected timestamp,{"e":[{"n":name,"v":value},...],"bt":milliseconds}')
    # A sum is null where one of its terms is, and not finite where one is NaN or infinite.
    total = F.abs(sum((F.col(name) for name in _NUMBERS[1:]), F.col(_NUMBERS[0])))
    is_good = (F.col("source") != "") & F.col("time").isNotNull() & (total < float("inf"))
    return (
        F.when(is_good & ~F.col("__unfit"), F.lit(None).cast("string"))
        .when(F.col(RAW).isNull(), F.lit(f"no text: column {column} is null"))
        .when(F.col("__unfit"), unreadable)
        .otherwise(_first_wrong())
    )


def _first_wrong() -> Column:
    """What is wrong with the first field that is; only asked for bad lines."""
    from pyspark.sql import functions as F

    source = F.when(F.coalesce(F.col("source"), F.lit("")) == "", F.lit("field source is missing"))
    came = F.substring(F.col("__time"), 1, _QUOTED_CHARACTERS)
    time = F.when(F.col("__time").isNull(), F.lit("field bt is missing")).when(
        F.col("time").isNull(), F.concat(F.lit("field bt must be a whole number, got "), came)
    )
    names = F.array(*map(F.lit, _NUMBERS))
    wrong = F.zip_with(names, F.slice("__entries", 2, len(_NUMBERS)), _wrong_number)
    too_large = F.lit("the numbers are too large to be added")
    return F.coalesce(source, time, F.get(F.array_compact(wrong), F.lit(0)), too_large)


def _wrong_number(name: Column, entry: Column) -> Column:
    from pyspark.sql import functions as F

    text = entry["v"]
    # NaN is greater than all in Spark's order, so that it goes the way of the infinite.
    is_finite = F.coalesce(F.abs(text.try_cast("double")) < float("inf"), F.lit(False))
    came = F.substring(text, 1, _QUOTED_CHARACTERS)
    missing = F.concat(F.lit("field "), name, F.lit(" is missing"))
    wrong = F.concat(F.lit("field "), name, F.lit(" must be a number, got "), came)
    return F.when(text.isNull(), missing).when(~is_finite, wrong)
