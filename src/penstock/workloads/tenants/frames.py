"""The four queries as one streaming DataFrame each, as an engineer writes them for plain Spark.

All give, in append mode, a row for each window: `at`, the window's end, and `value`. `late` must cover how
far the sources lie apart: Spark's watermark follows the foremost of them, and rows behind it are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.pipeline.windows import interval
from penstock.workloads.tenants.events import ADS_PER_CAMPAIGN, CLICK, VIEW

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVENT = "from_json(payload, 'ad int, kind int, revenue double') as event"
CAMPAIGN = f"ad div {ADS_PER_CAMPAIGN} as campaign"
LATE_SECONDS = 1.0


def parsed(rows: DataFrame) -> DataFrame:
    """Events that come as text, as columns."""
    return rows.selectExpr("source", EVENT, "at").selectExpr("source", "event.*", "at")


def ipq1_frame(rows: DataFrame, window: float, late: float = LATE_SECONDS, slides: int = 1) -> DataFrame:
    """Revenue of views: by campaign, then in all."""
    from pyspark.sql import functions as F

    views = _timed(rows, late).filter(f"kind = {VIEW}")
    groups = (_window(window, slides), F.expr(CAMPAIGN))
    campaigns = views.groupBy(*groups).agg(F.expr("sum(revenue) as revenue"))
    return _per_window(campaigns, window / slides, F.sum("revenue").alias("value"))


def ipq2_frame(rows: DataFrame, window: float, late: float = LATE_SECONDS, slides: int = 2) -> DataFrame:
    """The same in windows that overlap."""
    return ipq1_frame(rows, window, late, slides)


def ipq3_frame(rows: DataFrame, window: float, late: float = LATE_SECONDS, slides: int = 1) -> DataFrame:
    """Events by campaign and kind; then `value`, all of them, and `campaigns`, those with any view."""
    from pyspark.sql import functions as F

    groups = (_window(window, slides), F.expr(CAMPAIGN), F.col("kind"))
    counts = _timed(rows, late).groupBy(*groups).agg(F.expr("count(*) as n"))
    campaigns = F.expr(f"count_if(kind = {VIEW} and n > 0) as campaigns")
    return _per_window(counts, window / slides, F.expr("sum(n) as value"), campaigns)


def ipq4_frame(rows: DataFrame, window: float, late: float = LATE_SECONDS, slides: int = 1) -> DataFrame:
    """The revenue of views, joined with the clicks on the same ad in the same window, as two streams."""
    from pyspark.sql import functions as F

    timed = _timed(rows, late).withColumn("window", _window(window, slides))
    views = timed.filter(f"kind = {VIEW}").select("window", "ad", "revenue")
    clicks = timed.filter(f"kind = {CLICK}").select(
        F.col("window").alias("click_window"), F.col("ad").alias("clicked")
    )
    joined = views.join(clicks, F.expr("ad = clicked and window = click_window"))
    return _per_window(joined, window / slides, F.sum("revenue").alias("value"))


VIEWED = f"sum(revenue) FILTER (WHERE kind = {VIEW}) as viewed"
CLICKED = f"count_if(kind = {CLICK}) as clicks"
PAIRS = "sum(coalesce(viewed, 0) * clicks) as value"

Frame = Callable[["DataFrame", float, float, int], "DataFrame"]
FRAMES: Mapping[str, Frame] = {
    "ipq1": ipq1_frame,
    "ipq2": ipq2_frame,
    "ipq3": ipq3_frame,
    "ipq4": ipq4_frame,
}
"""What the bench's rivals run."""


def _window(size: float, slides: int) -> Column:
    from pyspark.sql import functions as F

    return F.window("at", interval(size), interval(size / slides))


def _timed(rows: DataFrame, late: float) -> DataFrame:
    # Coalesced behind the watermark, Spark knows that there is one partition, and need not shuffle.
    return rows.withWatermark("at", interval(late)).coalesce(1)


def _per_window(partial: DataFrame, slide: float, *aggregates: Column) -> DataFrame:
    """Once more by window: the last moments of any two windows lie a slide apart or more."""
    from pyspark.sql import functions as F

    again = F.window(F.window_time("window"), interval(slide))
    totals = partial.groupBy(again).agg(*aggregates)
    return totals.withColumn("at", F.col("window.end")).drop("window")
