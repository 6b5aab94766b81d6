"""A Kafka topic between the stages of a pipeline, on a real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spark.conftest import EngineFactory, eventually
from tests.spark.kafka.topics import Topic
from tests.spark.streams import Kept

from penstock import Pipeline, sinks, sources
from penstock.errors import PenstockError
from penstock.workloads.kafka_broker import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
MakeTopic = Callable[..., Topic]


def handing_on(into: Topic, through: Topic, kept: Kept) -> Pipeline:
    pipeline = Pipeline("p")
    records = pipeline.source("records", sources.Kafka(into.servers, into.name))
    numbers = records.operator(
        "numbers", lambda rows: rows.selectExpr("cast(cast(value as string) as int) n")
    )
    handed = numbers.queue(through=sinks.Kafka(through.servers, through.name))
    handed.operator("double", lambda rows: rows.selectExpr("2 * n as n")).sink(
        "out", kept.sink, latency="30s"
    )
    return pipeline


def test_stages_are_joined_by_a_topic_whose_backlog_is_seen_and_a_restart_goes_on(
    engine: EngineFactory, topic: MakeTopic
) -> None:
    into, through, kept = topic(2), topic(3), Kept()
    into.write(map(str, range(100)))
    first = engine()
    running = first.submit(handing_on(into, through, kept))
    first.drain()
    assert sorted(kept.column("n")) == [2 * number for number in range(100)]
    assert through.values == sorted(f'{{"n":{number}}}' for number in range(100))
    assert {report.stage: report.figures.rows_in for report in first.stages()} == {
        "p.numbers-out": 100,
        "p.double": 100,
    }
    assert not list((running.folder / "queues").glob("*"))
    [sink] = first.sinks()
    assert (sink.latency.count, sink.guarantee) == (100, "at least once")
    first.stop()
    into.write(map(str, range(100, 150)))
    second = engine()
    second.submit(handing_on(into, through, kept))
    second.drain()
    assert sorted(kept.column("n")) == [2 * number for number in range(150)]
    through.write(["no row of this queue"])
    eventually(lambda: second.pipelines["p"] == "failed")


EXACT = (
    "s STRING, b BOOLEAN, y TINYINT, l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(38, 9), x BINARY, day DATE, "
    "at TIMESTAMP, wall TIMESTAMP_NTZ, a ARRAY<INT>, o STRUCT<p: INT, q: STRING>, k MAP<STRING, DOUBLE>"
)
ROWS = (
    "select 'a \"quoted\" ü' s, true b, -7Y y, 9223372036854775807L l, float(0.1) f, double(1e-300) d, "
    "cast('12345678901234567890123456789.123456789' as decimal(38, 9)) m, x'00ff' x, date'2026-11-16' day, "
    "timestamp'2026-11-16 10:00:00.123456' at, timestamp_ntz'2026-11-16 10:00:00.000001' wall, "
    "array(1, null) a, named_struct('p', int(null), 'q', '') o, map('e', double('NaN'), 'n', null) k "
    "union all select null, null, null, null, float('-Infinity'), null, null, null, null, null, null, "
    "array(), null, map()"
)


def test_rows_of_every_type_come_out_of_a_topic_as_they_went_in(
    engine: EngineFactory, topic: MakeTopic, tmp_path: Path
) -> None:
    runs, through = engine(), topic(1)
    written = runs.spark.sql(ROWS)
    written.write.parquet(str(tmp_path / "rows"))
    pipeline = Pipeline("types")
    files = pipeline.source("rows", sources.Files(str(tmp_path / "rows"), "parquet", EXACT))
    files.queue(through=sinks.Kafka(through.servers, through.name)).sink(
        "out", sinks.Parquet(tmp_path / "out")
    )
    running = runs.submit(pipeline)
    eventually(lambda: running.state == "failed" or len(through.values) == 2)
    runs.drain()
    read = runs.spark.read.parquet(str(tmp_path / "out"))
    assert sorted(map(repr, read.collect())) == sorted(map(repr, written.collect()))


def test_what_json_would_not_hold_exactly_is_refused(engine: EngineFactory, broker: KafkaBroker) -> None:
    pipeline = Pipeline("p")
    rate = pipeline.source("rate", sources.Rate(1))
    odd = rate.operator("odd", lambda rows: rows.selectExpr("map(1, 'a') as m")).queue()
    odd.queue(through=sinks.Kafka(broker.servers, "odd")).sink("out", sinks.Console())
    with pytest.raises(PenstockError, match="got 'm' with map<int,string>: cast it before"):
        engine().submit(pipeline)
