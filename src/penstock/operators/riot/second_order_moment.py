"""SecondOrderMoment: how uneven the frequencies of values are, after Alon, Matias and Szegedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.scan import Fields, Recurrence, scan
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def second_order_moment(
    column: str = "value",
    *,
    slots: int = 10,
    seed: int = 1,
    into: str = "moment",
    by: Sequence[str] = ("sensor", "name"),
    order: str | Sequence[str] = "msgid",
) -> Transform:
    """The estimate after each value of a key: the mean of n (2 f - 1) over the values kept.

    n is the number of values so far, f how often one was met since it is kept. At most `slots` distinct
    values are kept; a new one then takes the place of one chosen by the hash of seed, key and n, so that
    runs repeat. A null changes nothing. With state: values and frequencies of each key.
    """
    from pyspark.sql import functions as F

    def step(state: Fields, row: Fields) -> dict[str, Column]:
        value, n = row[column], state.n + 1
        known = F.array_position(state["values"], value)
        room = F.size(state["values"]) < slots
        place = F.when(known > 0, known - 1).otherwise(_victim(seed, [row[key] for key in by], n, slots))
        new = F.when(known > 0, F.get(state.counts, place) + 1).otherwise(F.lit(1))
        grown = {
            "values": F.array_append(state["values"], value),
            "counts": F.array_append(state.counts, F.lit(1)),
        }
        changed = {"values": _put(state["values"], place, value), "counts": _put(state.counts, place, new)}
        kept = {
            name: F.when(value.isNull(), state[name])
            .when((known == 0) & room, grown[name])
            .otherwise(changed[name])
            for name in grown
        }
        return {"n": F.when(value.isNull(), state.n).otherwise(n), **kept}

    def estimate(state: Fields, row: Fields) -> dict[str, Column]:
        met = F.aggregate(state.counts, F.lit(0).cast("bigint"), lambda sum, count: sum + count)
        used = F.size(state.counts)
        return {into: F.try_divide(state.n * (2 * met - used), used)}

    def apply(rows: DataFrame) -> DataFrame:
        start = {
            "n": F.lit(0).cast("bigint"),
            "values": F.array().cast("array<double>"),
            "counts": F.array().cast("array<bigint>"),
        }
        return scan(rows, Recurrence(start, step, estimate), by=by, order=order)

    return apply


def _victim(seed: int, key: Sequence[Column], n: Column, slots: int) -> Column:
    """A place from 0: the first eight digits of the MD5 of seed, key and n, modulo `slots`."""
    from pyspark.sql import functions as F

    text = F.concat_ws(":", F.lit(str(seed)), *(each.cast("string") for each in key), n.cast("string"))
    digits = F.conv(F.substring(F.md5(text.cast("binary")), 1, 8), 16, 10)
    return F.pmod(digits.cast("bigint"), F.lit(slots))


def _put(array: Column, place: Column, value: Column) -> Column:
    """The array with another value at a place."""
    from pyspark.sql import functions as F

    after = F.slice(array, place.cast("int") + 2, F.size(array))
    return F.concat(F.slice(array, F.lit(1), place.cast("int")), F.array(value), after)
