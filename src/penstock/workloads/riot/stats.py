"""STATS: statistical summaries. Smooth each series and look ahead; estimate moments and distinct counts."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.operators import riot
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec, Stream
from penstock.workloads.riot.city import City, find_city

INSTANCES: Mapping[str, int] = {
    "parse_project": 1,
    "bloom_filter": 1,
    "kalman": 1,
    "sliding_linear_regression": 1,
    "second_order_moment": 1,
    "distinct_count": 1,
    "publish": 3,
}
_TREND = ("sensor", "name", "predictions")
_MOMENT = ("sensor", "name", "moment")
_DISTINCT = ("name", "count")


def stats(
    source: SourceSpec,
    *,
    publish: SinkSpec,
    fused: bool = False,
    instances: Mapping[str, int] | None = None,
    city: City | None = None,
) -> Pipeline:
    """Three published rows for each quantity of a line; a series has a trend from its 11th value on."""
    pipeline = Pipeline("stats", fuse=fused)
    lines = pipeline.source("lines", source)
    known = (city or find_city()).metadata
    said = _fused(lines, known) if fused else _unfused(lines, known, instances or {})
    said.sink("mqtt", publish)
    return pipeline


def _unfused(lines: Stream, known: Mapping[str, str], count: Mapping[str, int]) -> Stream:
    def k(name: str) -> int:
        return count.get(name, 1)

    parsed = lines.operator(
        "parse_project", riot.parse_project(), dead_letters=True, parallelism=k("parse_project")
    )
    tested = parsed.operator("bloom_filter", _bloom(known), dead_letters=True, parallelism=k("bloom_filter"))
    smooth = tested.operator("kalman", riot.kalman(), stateful=True, parallelism=k("kalman"))
    trends = smooth.operator(
        "sliding_linear_regression",
        riot.in_turn(riot.sliding_linear_regression(), riot.as_payload(*_TREND)),
        stateful=True,
        parallelism=k("sliding_linear_regression"),
    )
    moments = tested.operator(
        "second_order_moment",
        riot.in_turn(riot.second_order_moment(), riot.as_payload(*_MOMENT)),
        stateful=True,
        parallelism=k("second_order_moment"),
    )
    distinct = tested.operator(
        "distinct_count",
        riot.in_turn(riot.distinct_count(), riot.as_payload(*_DISTINCT)),
        stateful=True,
        parallelism=k("distinct_count"),
    )
    return trends.union("publish", moments, distinct, parallelism=k("publish"))


def _fused(lines: Stream, known: Mapping[str, str]) -> Stream:
    """Each summary adds its column to the rows, which go through all of them in one stage."""
    read = riot.in_turn(riot.parse_project(), _bloom(known))
    summaries = riot.in_turn(
        riot.second_order_moment(),
        riot.kalman(into="smooth"),
        riot.sliding_linear_regression("smooth", every_row=True),
        riot.distinct_count(),
        riot.as_payloads(_TREND, _MOMENT, _DISTINCT, needs="predictions"),
    )
    return lines.operator("read", read, dead_letters=True).operator("summarise", summaries, stateful=True)


def _bloom(known: Mapping[str, str]) -> riot.Transform:
    return riot.bloom_filter(known, "sensor", name=None, misses="dead_letter")
