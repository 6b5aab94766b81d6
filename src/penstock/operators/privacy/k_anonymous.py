"""k-anonymity: figures of a group leave only if enough different subjects stand behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.operators.privacy.subjects import one_subject
from penstock.operators.transform import Transform
from penstock.pipeline.latency import Duration, parse_not_negative, parse_positive
from penstock.pipeline.windows import as_tuple, interval

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TAKEN = ("window", "subjects", "suppressed")


def k_anonymous(
    k: int,
    *,
    on: str,
    size: Duration,
    by: str | Sequence[str],
    subject: str = "subject",
    aggregate: str | Column | Sequence[str | Column] = (),
    late: Duration = "0s",
) -> Transform:
    """One row for each window of `on` and group with k subjects or more: the struct `window`, the keys `by`,
    the aggregates, and `subjects`, the exact number of different ones.

    The other groups of a window become one row with all of these null but the window, and `suppressed`, how
    many they are (null in the other rows). Declare it with stateful=True and watermark=on: rows leave when
    their window is complete. The aggregates are the caller's: one that names subjects is not made anonymous.
    """
    keys = (by,) if isinstance(by, str) else tuple(by)
    _check(k, keys)
    size_seconds = parse_positive(size, "window size", "no row could fall into it")
    late_seconds = parse_not_negative(late, "lateness", "a window cannot close before its end")
    aggregates = as_tuple(aggregate)

    def anonymous(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        columns = [F.expr(each) if isinstance(each, str) else each for each in aggregates]
        # Exact, where approx_count_distinct would let a group of fewer than k pass now and then.
        subjects = F.size(F.collect_set("__subject")).cast("long").alias("subjects")
        timed = rows.withColumn("__subject", one_subject(subject)).withWatermark(on, interval(late_seconds))
        groups = timed.groupBy(F.window(on, interval(size_seconds)), *keys).agg(*columns, subjects)
        return _suppressed(groups, k)

    return anonymous


def _suppressed(groups: DataFrame, k: int) -> DataFrame:
    """All groups of a window leave together: those under k are counted before any row of it is seen."""
    from pyspark.sql import functions as F

    names = [name for name in groups.columns if name != "window"]
    enough = F.col("subjects") >= k
    shown = F.collect_list(F.when(enough, F.struct(*names, F.lit(None).cast("long").alias("suppressed"))))
    windows = groups.groupBy("window").agg(shown.alias("shown"), F.count_if(~enough).alias("n"))
    nulls = [F.lit(None).cast(groups.schema[name].dataType).alias(name) for name in names]
    hidden = F.when(F.col("n") > 0, F.array(F.struct(*nulls, F.col("n").alias("suppressed"))))
    empty = F.array().cast(windows.schema["shown"].dataType)
    all_rows = F.concat(F.col("shown"), F.coalesce(hidden, empty))
    return windows.select("window", F.explode(all_rows).alias("row")).select("window", "row.*")


def _check(k: int, keys: tuple[str, ...]) -> None:
    if k < 2:
        raise PenstockError(f"k must be 2 or more, got {k}: a single subject would be shown")
    if taken := [name for name in keys if name in _TAKEN]:
        raise PenstockError(
            f"by must not contain {taken[0]!r}, got it: that is a column of the result of its own"
        )
