"""Join: the observations of a message, gathered into one wide row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.riot.rows import CARRIED, OBSERVATIONS, PLACE
from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def join_by_message(
    names: Sequence[str] = OBSERVATIONS,
    *,
    by: str = "msgid",
    carry: Sequence[str] = (*CARRIED, "time", *PLACE),
) -> Transform:
    """One wide row for each message, as soon as an observation of every name has come, null or not.

    RIoTBench's nine fields are the six observations with time, longitude and latitude, which each of them
    carries. `source` is text, the others are numbers. A message's state goes when it is complete; a name
    that comes twice before replaces the former; names not asked for are not waited for. Within a turn, two
    messages of one id are told apart by time and sensor; the same message twice gives one row or two, all
    alike.
    """
    from pyspark.sql import functions as F

    columns = {name: "text" if name == "source" else "value" for name in names}
    complete = (1 << len(names)) - 1

    def gather(state: Fields, row: Fields) -> dict[str, Column]:
        came = F.lit(0)
        for at, name in enumerate(names):
            came = F.when(row["name"] == name, F.lit(1 << at)).otherwise(came)
        kept = {
            name: F.when(row["name"] == name, row[column]).otherwise(state[name])
            for name, column in columns.items()
        }
        return {"came": state.came.bitwiseOR(came), **kept}

    def done(state: Fields, row: Fields) -> Column:
        return state.came == complete

    def apply(rows: DataFrame) -> DataFrame:
        types = {name: "string" if column == "text" else "double" for name, column in columns.items()}
        start = {"came": F.lit(0), **{name: F.lit(None).cast(kind) for name, kind in types.items()}}
        recurrence = Recurrence(start, gather, lambda state, row: {n: state[n] for n in names}, done, done)
        order = [column for column in ("time", "sensor", "name") if column in rows.columns]
        return scan(rows, recurrence, by=by, order=order).select(*carry, *names)

    return apply
