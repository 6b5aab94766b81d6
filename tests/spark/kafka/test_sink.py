"""Kafka topics as a sink, on a real broker, read back by another reader."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.kafka.topics import Topic
from tests.spark.streams import Kept, from_spool, readings, table

from penstock import Pipeline, Spool, sinks, sources
from penstock.errors import PenstockError
from penstock.workloads.kafka_broker import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
MakeTopic = Callable[..., Topic]
ROWS = readings(600, seconds=30)
IDS = sorted(str(row["id"]) for row in ROWS)
RECORD = (
    "sensor as key",
    "cast(id as string) as value",
    "array(named_struct('key', 'unit', 'value', cast('m' as binary))) as headers",
)


def writing(source: Spool, topic: Topic, name: str = "p") -> Pipeline:
    pipeline = Pipeline(name)
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator("record", lambda rows: rows.selectExpr(*RECORD))
    stream.sink("out", sinks.Kafka(topic.servers, topic.name))
    return pipeline


def test_each_row_is_a_record_with_its_key_value_and_headers(
    engine: EngineFactory, spool: SpoolFactory, topic: MakeTopic
) -> None:
    source, made, runs = spool(), topic(2), engine()
    runs.submit(writing(source, made))
    for start in range(0, 600, 200):
        source.append(table(ROWS[start : start + 200]))
    runs.drain()
    records = made.read()
    found = {int(bytes(each["value"])): each for each in records}
    assert len(records) == 600
    assert {id: bytes(each["key"]).decode() for id, each in found.items()} == {
        row["id"]: row["sensor"] for row in ROWS
    }
    assert [(each["key"], bytes(each["value"])) for each in found[0]["headers"]] == [("unit", b"m")]
    [sink] = runs.sinks()
    assert sink.latency.count == 600


def test_from_topic_to_topic_is_one_stage(engine: EngineFactory, topic: MakeTopic) -> None:
    first, second, runs = topic(2), topic(2), engine()
    pipeline = Pipeline("p")
    source = pipeline.source("in", sources.Kafka(first.servers, first.name))
    source.operator("even", lambda rows: rows.where("cast(cast(value as string) as int) % 2 = 0")).operator(
        "record", lambda rows: rows.select("key", "value")
    ).sink("out", sinks.Kafka(second.servers, second.name))
    runs.submit(pipeline)
    first.write(str(number) for number in range(500))
    runs.drain()
    assert second.values == sorted(str(number) for number in range(0, 500, 2))
    [report] = runs.stages()
    assert (report.figures.rows_in, report.stage) == (500, "p.record")


def test_an_operator_that_fails_between_topics_is_blamed_and_not_tried_for_ever(
    engine: EngineFactory, topic: MakeTopic
) -> None:
    first, second, runs = topic(1), topic(1), engine()
    pipeline = Pipeline("p")
    source = pipeline.source("in", sources.Kafka(first.servers, first.name))
    source.operator(
        "bad", lambda rows: rows.selectExpr("cast(raise_error('no luck') as string) as value")
    ).sink("out", sinks.Kafka(second.servers, second.name))
    running = runs.submit(pipeline)
    first.write(["a"])
    eventually(lambda: running.state == "failed")
    assert "operator 'bad' of pipeline 'p' failed: " in str(running.error)
    assert "no luck" in str(running.error)


def test_rows_wait_for_a_broker_that_is_away_and_nothing_else_stops(
    engine: EngineFactory,
    spool: SpoolFactory,
    topic: MakeTopic,
    broker: KafkaBroker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, other, kept, made, runs = spool(), spool("other"), Kept(), topic(2), engine()
    running = runs.submit(writing(source, made))
    beside = Pipeline("other")
    beside.source("readings", from_spool(other)).sink("out", kept.sink)
    runs.submit(beside)
    source.append(table(ROWS[:200]))
    runs.drain()
    broker.stop()
    eventually(lambda: not running.stages[0].may_run)
    source.append(table(ROWS[200:]))
    other.append(table(ROWS))
    eventually(lambda: len(kept.rows) == 600)
    assert running.rows_waiting == 400
    assert runs.pipelines == {"p": "running", "other": "running"}
    broker.start()
    runs.drain()
    assert made.values == IDS
    assert f"Kafka at {broker.servers} is there again" in caplog.text


def test_a_turn_that_a_dying_broker_broke_off_gives_its_rows_back(
    engine: EngineFactory,
    spool: SpoolFactory,
    topic: MakeTopic,
    broker: KafkaBroker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from penstock.spark.kafka import end

    short = {"max.block.ms": "1500", "delivery.timeout.ms": "1500", "request.timeout.ms": "1000"}
    monkeypatch.setattr(end, "DEFAULTS", {**end.DEFAULTS, **short})
    source, made, runs = spool(), topic(2), engine()
    running = runs.submit(writing(source, made))
    source.append(table(ROWS[:10]))
    runs.drain()
    broker.kill()
    # Before anybody has noticed: the turn itself finds out.
    source.append(table(ROWS[10:]))
    eventually(lambda: not running.stages[0].may_run and not runs._dispatcher._scheduler.running)
    assert running.rows_waiting == 590
    assert runs.pipelines == {"p": "running"}
    broker.start()
    runs.drain()
    assert sorted(set(made.values)) == IDS


def test_rows_without_a_value_are_refused_at_the_start(
    engine: EngineFactory, spool: SpoolFactory, topic: MakeTopic
) -> None:
    pipeline, made = Pipeline("p"), topic(1)
    pipeline.source("readings", from_spool(spool())).operator("ids", lambda rows: rows.select("id")).sink(
        "out", sinks.Kafka(made.servers, made.name)
    )
    with pytest.raises(PenstockError) as caught:
        engine().submit(pipeline)
    assert str(caught.value) == (
        "sink 'out' of pipeline 'p' must be given the column 'value', got id: there would be nothing to write"
    )


def test_a_value_that_is_neither_text_nor_bytes_is_refused_at_the_start(
    engine: EngineFactory, spool: SpoolFactory, topic: MakeTopic
) -> None:
    pipeline, made = Pipeline("p"), topic(1)
    stream = pipeline.source("readings", from_spool(spool()))
    stream = stream.operator("ids", lambda rows: rows.selectExpr("id as value"))
    stream.sink("out", sinks.Kafka(made.servers, made.name))
    with pytest.raises(PenstockError) as caught:
        engine().submit(pipeline)
    assert str(caught.value) == (
        "sink 'out' of pipeline 'p' must be given a column 'value' of type string or binary, got bigint: "
        "it could not be written"
    )
