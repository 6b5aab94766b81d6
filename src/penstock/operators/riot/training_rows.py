"""TRAIN's rows: a fixed table, parts of which a timer's requests ask for, and their classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.java_functions import called, once_per_jvm
from penstock.operators.riot.rows import QUANTITIES
from penstock.operators.transform import Transform
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CLASSES = ("BAD", "GOOD", "VERYGOOD", "EXCELLENT")


def read_rows(
    table: Sequence[Sequence[float | None]], names: Sequence[str] = QUANTITIES, *, into: str = "rows"
) -> Transform:
    """Adds to a request the rows `rowstart` up to, but not including, `rowend` of a table, as an array of
    structs.

    What lies outside the table is not there. The table is sent to each JVM once: a request costs no job.
    """
    from pyspark.sql import functions as F

    lines = [",".join("" if value is None else repr(float(value)) for value in row) for row in table]
    kind = f"ARRAY<STRUCT<{', '.join(f'{name}: DOUBLE' for name in names)}>>"

    def read(requests: DataFrame) -> DataFrame:
        session = requests.sparkSession
        ranges = jvm(session).penstock.RowRange(once_per_jvm(session, "rows", lines))
        first, end = F.col("rowstart").cast("bigint"), F.col("rowend").cast("bigint")
        return requests.withColumn(into, called(session, ranges, kind, first, end))

    return read


def annotate_class(
    column: str = "airquality_raw",
    *,
    rows: str = "rows",
    into: str = "class",
    classes: Sequence[str] = CLASSES,
) -> Transform:
    """Adds to each row of a request's array its class, by percentiles within the request.

    Under the 50th BAD, under the 75th GOOD, under the greatest VERYGOOD, the greatest EXCELLENT. A
    percentile p of n sorted values is the one at place p (n + 1) / 100, interpolated between neighbours.
    Null stays null.
    """
    from pyspark.sql import functions as F

    def classify(requests: DataFrame) -> DataFrame:
        values = F.filter(F.transform(rows, lambda each: each[column]), lambda value: value.isNotNull())
        ordered = requests.withColumn("__sorted", F.sort_array(values))
        cuts = [_percentile(F.col("__sorted"), percent) for percent in (50.0, 75.0, 100.0)]
        cut = ordered.withColumn("__cuts", F.array(*cuts))

        def with_class(row: Column) -> Column:
            value, found = row[column], F.lit(classes[-1])
            for at, name in reversed(list(enumerate(classes[:-1]))):
                found = F.when(value < F.get(F.col("__cuts"), F.lit(at)), F.lit(name)).otherwise(found)
            return row.withField(into, F.when(value.isNotNull(), found))

        return cut.withColumn(rows, F.transform(rows, with_class)).drop("__sorted", "__cuts")

    return classify


def _percentile(ordered: Column, percent: float) -> Column:
    from pyspark.sql import functions as F

    n = F.size(ordered)
    place = F.least(F.greatest(F.lit(percent / 100.0) * (n + 1), F.lit(1.0)), n.cast("double"))
    low = F.floor(place).cast("int")
    below = F.get(ordered, low - 1)
    above = F.coalesce(F.get(ordered, low), below)
    return below + (place - low) * (above - below)
