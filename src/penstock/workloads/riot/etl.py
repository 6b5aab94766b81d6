"""ETL: extract, transform and load. Clean readings, gather and annotate them, then store and publish them."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.operators import riot
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec, Stream
from penstock.workloads.riot.city import City, find_city

INSTANCES: Mapping[str, int] = {
    "senml_parse": 1,
    "range_filter": 1,
    "bloom_filter": 1,
    "interpolate": 1,
    "join": 1,
    "annotate": 1,
    "table_insert": 1,
    "csv_to_senml": 1,
    "publish": 2,
}
COLUMNS = (
    "msgid",
    "arrived",
    "time",
    "longitude",
    "latitude",
    "source",
    *riot.QUANTITIES,
    "location",
    "type",
)


def etl(
    source: SourceSpec,
    *,
    publish: SinkSpec,
    table: SinkSpec,
    fused: bool = False,
    instances: Mapping[str, int] | None = None,
    city: City | None = None,
) -> Pipeline:
    """Two rows for each line: one into the table, one published. `source` gives value, arrived and msgid."""
    pipeline = Pipeline("etl", fuse=fused)
    lines = pipeline.source("lines", source)
    known = (city or find_city()).metadata
    count = {} if fused else instances or {}
    annotated = _fused(lines, known) if fused else _unfused(lines, known, count)
    stored = annotated.operator(
        "table_insert", lambda rows: rows.select(*COLUMNS), parallelism=count.get("table_insert", 1)
    )
    stored.sink("table", table)
    senml = annotated.operator("csv_to_senml", riot.csv_to_senml(), parallelism=count.get("csv_to_senml", 1))
    senml.operator("publish", riot.published, parallelism=count.get("publish", 1)).sink("mqtt", publish)
    return pipeline


def _unfused(lines: Stream, known: Mapping[str, str], count: Mapping[str, int]) -> Stream:
    def k(name: str) -> int:
        return count.get(name, 1)

    parsed = lines.operator(
        "senml_parse", riot.senml_parse(), dead_letters=True, parallelism=k("senml_parse")
    )
    valid = parsed.operator("range_filter", riot.range_filter(), parallelism=k("range_filter"))
    tested = valid.operator("bloom_filter", riot.bloom_filter(known), parallelism=k("bloom_filter"))
    filled = tested.operator("interpolate", riot.interpolate(), stateful=True, parallelism=k("interpolate"))
    joined = filled.operator("join", _join(), stateful=True, parallelism=k("join"))
    return joined.operator("annotate", _annotate(known), dead_letters=True, parallelism=k("annotate"))


def _fused(lines: Stream, known: Mapping[str, str]) -> Stream:
    read = riot.in_turn(riot.senml_parse(), riot.range_filter(), riot.bloom_filter(known))
    gather = riot.in_turn(riot.interpolate(), _join(), _annotate(known))
    clean = lines.operator("read", read, dead_letters=True)
    return clean.operator("gather", gather, stateful=True, dead_letters=True)


def _join() -> riot.Transform:
    """With the sensor: the Bloom filter has made a null of a source that nobody knows."""
    return riot.join_by_message(carry=("msgid", "arrived", "time", "longitude", "latitude", "sensor"))


def _annotate(known: Mapping[str, str]) -> riot.Transform:
    return riot.annotate(known, told_by="sensor")
