"""The workflow's own operators: who was where somebody exposed was, and who moves between buildings."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.operators.java_functions import called, once_per_jvm
from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform
from penstock.pipeline.latency import Duration, parse_positive
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ORDER = ("at", "subject")


def contacts(exposed: Collection[str], *, within: Duration = "15m") -> Transform:
    """A row for each association with an access point where an exposed subject was at most `within` before.

    It gets `exposed_at`, when the last such subject was there; those of exposed subjects themselves leave
    no row. With state by access point: that moment. Who is exposed is sent to each JVM once and stands in
    no plan.
    """
    from pyspark.sql import functions as F

    length = timedelta(seconds=parse_positive(within, "time since", "nobody would ever be warned"))

    def step(state: Fields, row: Fields) -> dict[str, Column]:
        later = F.greatest(state.exposed_at, row.at)  # nulls are passed over
        return {"exposed_at": F.when(row.exposed, later).otherwise(state.exposed_at)}

    def is_contact(state: Fields, row: Fields) -> Column:
        return ~row.exposed & state.exposed_at.between(row.at - F.lit(length), row.at)

    def apply(rows: DataFrame) -> DataFrame:
        start = {"exposed_at": F.lit(None).cast("timestamp")}
        told = Recurrence(start, step, lambda state, row: {"exposed_at": state.exposed_at}, is_contact)
        return scan(_marked(rows, exposed), told, by="ap", order=ORDER).drop("exposed")

    return apply


def _marked(rows: DataFrame, subjects: Collection[str]) -> DataFrame:
    from pyspark.sql import functions as F

    session = rows.sparkSession
    lines = [f"{subject}\tyes" for subject in sorted(subjects)]
    lookup = jvm(session).penstock.Lookup(once_per_jvm(session, "lookup", lines))
    return rows.withColumn("exposed", called(session, lookup, "STRING", F.col("subject")).isNotNull())


def moves(column: str = "building", *, into: str = "origin", keep_others: bool = False) -> Transform:
    """A row for each time a subject turns up in another building than before, with that one as `into`.

    With state by subject: the building. A row without a building changes nothing and leaves nothing. With
    `keep_others` every other row leaves too, without subject and building: so that nobody moved can then
    not be told from there being no row.
    """
    from pyspark.sql import functions as F

    def step(state: Fields, row: Fields) -> dict[str, Column]:
        here = row[column]
        return {"here": F.coalesce(here, state.here), "before": F.when(here.isNotNull(), state.here)}

    def has_moved(state: Fields, row: Fields) -> Column:
        return state.before != row[column]

    def of_movers(state: Fields, row: Fields) -> dict[str, Column]:
        told = {into: state.before, "subject": row.subject, column: row[column]}
        return {name: F.when(has_moved(state, row), value) for name, value in told.items()}

    def apply(rows: DataFrame) -> DataFrame:
        nowhere = F.lit(None).cast("string")
        start = {"here": nowhere, "before": nowhere}
        moved = (
            Recurrence(start, step, of_movers)
            if keep_others
            else Recurrence(start, step, lambda state, row: {into: state.before}, has_moved)
        )
        return scan(rows, moved, by="subject", order=ORDER)

    return apply
