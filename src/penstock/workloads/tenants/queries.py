"""IPQ1 to IPQ4 as pipelines: results by key in a window, then one value for each window, in two stages.

Each gives a row for each window: `at`, the window's end, and `value`. With `fused` the whole query is one
stage, as plain Spark runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.pipeline import Pipeline, SinkSpec, SourceSpec, Stream, Tenant
from penstock.pipeline.latency import Duration, parse_not_negative, parse_positive
from penstock.workloads.tenants import frames
from penstock.workloads.tenants.events import VIEW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class _Shape:
    """What tells the queries apart: keys and aggregates of the first stage, aggregates of the second."""

    by: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    frame: frames.Frame
    slides: int = 1
    """Slides in a window; 1 where windows do not overlap."""
    payload: bool = False
    """Whether events come as text, to be parsed first."""

    def events(self, rows: DataFrame) -> DataFrame:
        return frames.parsed(rows) if self.payload else rows


_REVENUE = _Shape(
    ("campaign",),
    (f"sum(revenue) FILTER (WHERE kind = {VIEW}) as revenue",),
    ("sum(revenue) as value",),
    frames.ipq1_frame,
)
_SLIDING = _Shape(_REVENUE.by, _REVENUE.first, _REVENUE.second, frames.ipq2_frame, slides=2)
_COUNTS = _Shape(
    ("campaign", "kind"),
    ("count(*) as n",),
    ("sum(n) as value", f"count_if(kind = {VIEW} and n > 0) as campaigns"),
    frames.ipq3_frame,
)
# In two stages the join is an aggregation of both streams by ad: pairs leave when their window is complete.
_JOINED = _Shape(("ad",), (frames.VIEWED, frames.CLICKED), (frames.PAIRS,), frames.ipq4_frame)


def ipq1(
    source: SourceSpec,
    sink: SinkSpec,
    *,
    window: Duration,
    tenant: Tenant | str,
    fused: bool = False,
    late: Duration = "0s",
    slides: int | None = None,
    payload: bool = False,
) -> Pipeline:
    """Revenue of views: by campaign, then in all, in tumbling windows.

    `tenant` names the pipeline; a name alone serves too. `late` says how far rows may lie behind the
    frontier of their window, `slides` how many windows each falls into, and `payload` that they come as text.
    """
    return _declare(
        _with(_REVENUE, slides, payload), source, sink, window=window, tenant=tenant, fused=fused, late=late
    )


def ipq2(
    source: SourceSpec,
    sink: SinkSpec,
    *,
    window: Duration,
    tenant: Tenant | str,
    fused: bool = False,
    late: Duration = "0s",
    slides: int | None = None,
    payload: bool = False,
) -> Pipeline:
    """As IPQ1, in windows that overlap: each row falls into two, or as many as `slides` says."""
    return _declare(
        _with(_SLIDING, slides, payload), source, sink, window=window, tenant=tenant, fused=fused, late=late
    )


def ipq3(
    source: SourceSpec,
    sink: SinkSpec,
    *,
    window: Duration,
    tenant: Tenant | str,
    fused: bool = False,
    late: Duration = "0s",
    slides: int | None = None,
    payload: bool = False,
) -> Pipeline:
    """Events by campaign and kind; then all of them (`value`), and the `campaigns` with any view."""
    return _declare(
        _with(_COUNTS, slides, payload), source, sink, window=window, tenant=tenant, fused=fused, late=late
    )


def ipq4(
    source: SourceSpec,
    sink: SinkSpec,
    *,
    window: Duration,
    tenant: Tenant | str,
    fused: bool = False,
    late: Duration = "0s",
    slides: int | None = None,
    payload: bool = False,
) -> Pipeline:
    """Views joined with clicks on the same ad in the same window; then the revenue of all pairs."""
    return _declare(
        _with(_JOINED, slides, payload), source, sink, window=window, tenant=tenant, fused=fused, late=late
    )


def _with(shape: _Shape, slides: int | None, payload: bool) -> _Shape:
    return replace(shape, slides=slides or shape.slides, payload=payload)


Query = Callable[..., Pipeline]
QUERIES: Mapping[str, Query] = {"ipq1": ipq1, "ipq2": ipq2, "ipq3": ipq3, "ipq4": ipq4}


def _declare(
    shape: _Shape,
    source: SourceSpec,
    sink: SinkSpec,
    *,
    window: Duration,
    tenant: Tenant | str,
    fused: bool,
    late: Duration,
) -> Pipeline:
    size = parse_positive(window, "window size", "no row could fall into it")
    pipeline = pipeline_of(tenant)
    events = pipeline.source("events", source)
    made = _one_stage(shape, events, size, late) if fused else _two_stages(shape, events, size, late)
    made.sink("results", sink)
    return pipeline


def pipeline_of(tenant: Tenant | str) -> Pipeline:
    """An empty pipeline of that tenant, under the tenant's name."""
    if isinstance(tenant, str):
        return Pipeline(tenant)
    return Pipeline(tenant.name, tenant=tenant)


def _two_stages(shape: _Shape, events: Stream, size: float, late: Duration) -> Stream:
    keyed = events.operator("keyed", lambda rows: _with_campaign(shape.events(rows)))
    by_key = keyed.window(
        "by_key",
        on="at",
        size=size,
        slide=size / shape.slides,
        late=late,
        by=shape.by,
        aggregate=shape.first,
    )
    dated = by_key.operator("dated", _with_end)
    return dated.operator("per_window", _per_window(shape.second), stateful=True, watermark="at")


def _one_stage(shape: _Shape, events: Stream, size: float, late: Duration) -> Stream:
    seconds = parse_not_negative(late, "lateness", "a window cannot close before its end")

    def whole(rows: DataFrame) -> DataFrame:
        return shape.frame(shape.events(rows), size, seconds, shape.slides)

    return events.operator("query", whole, stateful=True, watermark="at")


def _with_campaign(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("at", "ad", frames.CAMPAIGN, "kind", "revenue")


def _with_end(rows: DataFrame) -> DataFrame:
    """The end of the window as a column: what the next stage groups by. The window itself dates the rows."""
    from pyspark.sql import functions as F

    return rows.withColumn("at", F.col("window.end"))


def _per_window(aggregates: tuple[str, ...]) -> Callable[[DataFrame], DataFrame]:
    def total(rows: DataFrame) -> DataFrame:
        """By the window's end itself, not by a window around it.

        All keys of a window come in one segment, and Spark closes a group of this kind as soon as the
        watermark stands at it: the value leaves with the turn that brings the keys.
        """
        from pyspark.sql import functions as F

        columns = [F.expr(each) for each in aggregates]
        return rows.withWatermark("at", "0 seconds").groupBy("at").agg(*columns)

    return total
