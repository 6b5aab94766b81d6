"""Join: the observations of a message, gathered into one wide row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.riot.rows import CARRIED, OBSERVATIONS, PLACE
from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Where two copies of a message come in one turn, so that the parts of one come before those of the other.
_ORDER = ("arrived", "time", "sensor")


def join_by_message(
    names: Sequence[str] = OBSERVATIONS,
    *,
    by: str | Sequence[str] = ("msgid", "time", "sensor"),
    carry: Sequence[str] = (*CARRIED, "time", *PLACE),
    name: str = "name",
    value: str = "value",
    text: str = "text",
    texts: Sequence[str] = ("source",),
) -> Transform:
    """One wide row for each message, as soon as an observation of every name has come, null or not.

    RIoTBench's nine fields are the six observations with time, longitude and latitude, which each of them
    carries. The columns `by` tell messages apart: an id that begins anew, or that two gateways use, is
    another message by its time and sensor. Of a name the message has `value`, or `text` if it is among
    `texts`; names not asked for are not waited for. A message that comes n times gives n rows, however turns
    cut it: what comes again waits for the rest of its copy, in the order of arrival. With state: the
    observations of messages that are not complete.
    """
    from pyspark.sql import functions as F

    columns = {each: text if each in texts else value for each in names}
    complete = (1 << len(names)) - 1

    def has_left(state: Fields) -> Column:
        """A state that is complete before a row has left with the last one: what waits behind it moves up."""
        return state["__came"] == complete

    def gather(state: Fields, row: Fields) -> dict[str, Column]:
        came, again, bit = state["__came"], F.lit(0), F.lit(0)
        queues = {}
        for at, (each, column) in enumerate(columns.items()):
            queue = state[each]
            behind = F.when(has_left(state), F.slice(queue, 2, F.size(queue))).otherwise(queue)
            is_this = row[name] == each
            queues[each] = F.when(is_this, F.concat(behind, F.array(row[column]))).otherwise(behind)
            bit = F.when(is_this, F.lit(1 << at)).otherwise(bit)
            again = again + F.when(F.size(queue) > 1, F.lit(1 << at)).otherwise(F.lit(0))
        came = F.when(has_left(state), again).otherwise(came).bitwiseOR(bit)
        waiting = state["__waiting"] - F.when(has_left(state), F.lit(len(names))).otherwise(F.lit(0))
        return {"__came": came, "__waiting": waiting + (bit > 0).cast("int"), **queues}

    def leave(state: Fields, row: Fields) -> dict[str, Column]:
        return {each: F.get(state[each], F.lit(0)) for each in names}

    def is_complete(state: Fields, row: Fields) -> Column:
        return has_left(state)

    def is_last(state: Fields, row: Fields) -> Column:
        return (state["__waiting"] == 0) | (has_left(state) & (state["__waiting"] == len(names)))

    def apply(rows: DataFrame) -> DataFrame:
        kinds = {each: "string" if each in texts else "double" for each in names}
        queues = {each: F.array().cast(f"array<{kind}>") for each, kind in kinds.items()}
        start = {"__came": F.lit(0), "__waiting": F.lit(0), **queues}
        recurrence = Recurrence(start, gather, leave, is_complete, is_last)
        order = [column for column in (*_ORDER, name) if column in rows.columns]
        return scan(rows, recurrence, by=by, order=order).select(*carry, *names)

    return apply
