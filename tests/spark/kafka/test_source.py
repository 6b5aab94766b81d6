"""Kafka topics as a source, on a real broker."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spark.conftest import EngineFactory, eventually
from tests.spark.kafka.topics import Topic
from tests.spark.streams import Kept, Turns

from penstock import Pipeline, sinks, sources
from penstock.errors import PenstockError
from penstock.queues.offsets import OffsetsExpired
from penstock.workloads.kafka_broker import PASSWORD, PASSWORD_OPTIONS, KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
MakeTopic = Callable[..., Topic]


def names(first: int, last: int) -> list[str]:
    return [f"{number:05d}" for number in range(first, last)]


def reading(topic: Topic, kept: Kept, **settings: str) -> Pipeline:
    pipeline = Pipeline("p")
    source = pipeline.source("records", sources.Kafka(topic.servers, topic.name, **settings))  # type: ignore[arg-type]
    source.operator("text", lambda rows: rows.selectExpr("cast(value as string) as text")).sink(
        "out", kept.sink
    )
    return pipeline


def into(topic: Topic, folder: Path) -> Pipeline:
    pipeline = Pipeline("p")
    source = pipeline.source("records", sources.Kafka(topic.servers, topic.name))
    source.operator("text", lambda rows: rows.selectExpr("cast(value as string) as text")).sink(
        "out", sinks.Parquet(folder)
    )
    return pipeline


def test_rows_of_all_partitions_come_once_and_the_backlog_is_seen(
    engine: EngineFactory, topic: MakeTopic
) -> None:
    made, kept, runs = topic(3), Kept(), engine()
    made.write(names(0, 900))
    running = runs.submit(reading(made, kept))
    runs.drain()
    assert sorted(kept.column("text")) == names(0, 900)
    runs.pause("p")
    made.write(names(900, 1000))
    eventually(lambda: running.rows_waiting == 100)
    runs.resume("p")
    runs.drain()
    assert sorted(kept.column("text")) == names(0, 1000)
    [report] = runs.stages()
    assert report.figures.rows_in == 1000


def test_a_turn_takes_just_the_rows_granted_and_another_size_needs_no_restart(
    engine: EngineFactory, topic: MakeTopic
) -> None:
    made, kept, turns = topic(2), Kept(), Turns()
    runs = engine(consumption="at-most-70", grain="10m")
    runs.on_turn(turns)
    made.write(names(0, 350))
    runs.submit(reading(made, kept))
    runs.drain()
    runs.reschedule(consumption="at-most-200")
    made.write(names(350, 750))
    runs.drain()
    sizes = [record.rows_in for record in turns.of("p.text")]
    assert sorted(kept.column("text")) == names(0, 750)
    assert sizes[:5] == [70] * 5
    assert max(sizes) == 200


def test_a_restart_goes_on_after_the_last_row_and_latest_is_decided_once(
    engine: EngineFactory, topic: MakeTopic, tmp_path: Path
) -> None:
    made, kept = topic(2), Kept()
    made.write(names(0, 50))
    runs = engine()
    running = runs.submit(reading(made, kept, start="latest"))
    eventually(lambda: bool(running.stages[0].journal.entry.positions))
    runs.stop()
    made.write(names(50, 120))
    again = engine()
    again.submit(reading(made, kept, start="latest"))
    again.drain()
    assert sorted(kept.column("text")) == names(50, 120)
    again.stop()
    made.write(names(120, 150))
    last = engine()
    last.submit(reading(made, kept, start="latest"))
    last.drain()
    assert sorted(kept.column("text")) == names(50, 150)


def test_rows_of_partitions_that_are_added_later_come_too(engine: EngineFactory, topic: MakeTopic) -> None:
    made, kept, runs = topic(1), Kept(), engine()
    runs.submit(reading(made, kept, start="latest"))
    runs.drain()
    made.write(names(0, 40))
    made.grow(4)
    made.write(names(40, 80))
    eventually(lambda: len(kept.rows) == 80)
    assert sorted(kept.column("text")) == names(0, 80)


def test_a_topic_that_is_not_there_is_waited_for(
    engine: EngineFactory, spark: object, broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    made, kept, runs = Topic(spark, broker.servers, "comes-later"), Kept(), engine()
    runs.submit(reading(made, kept))
    told = "stage 'p.text' reads topic 'comes-later', which is not there: it is waited for"
    eventually(lambda: told in caplog.text)
    made.make(2)
    made.write(names(0, 30))
    eventually(lambda: len(kept.rows) == 30)
    assert caplog.text.count("which is not there") == 1


def test_a_broker_that_restarts_costs_no_row_and_none_comes_twice(
    engine: EngineFactory, topic: MakeTopic, broker: KafkaBroker, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    made, runs = topic(2), engine(consumption="at-most-5")
    made.write(names(0, 9000))
    running = runs.submit(into(made, tmp_path / "out"))
    eventually(lambda: any((tmp_path / "out").glob("*.parquet")))
    broker.stop()
    eventually(lambda: not running.stages[0].may_run)
    assert 0 < running.rows_waiting < 9000  # turns were under way, and more were to come
    assert runs.pipelines == {"p": "running"}
    broker.start()
    runs.reschedule(consumption="all")
    made.write(names(9000, 9100))
    runs.drain()
    found = pq.read_table(tmp_path / "out")["text"].to_pylist()
    assert sorted(found) == names(0, 9100)


def test_records_that_expired_stop_the_pipeline_with_a_choice_and_each_choice_goes_on(
    engine: EngineFactory, topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    made, kept = topic(1), Kept()
    runs = engine()
    runs.submit(reading(made, kept))
    made.write(names(0, 100))
    runs.drain()
    runs.stop()
    made.write(names(100, 300))
    made.delete_before(0, 250)
    again = engine()
    running = again.submit(reading(made, kept))
    eventually(lambda: running.state == "failed")
    assert isinstance(running.error, OffsetsExpired)
    assert str(running.error) == (
        f"partition {made.name}/0 must still hold offset 100, which 'p.text' reads next, begins at 250: "
        "150 rows are lost: the pipeline stops. Set on_lost to 'earliest' to go on with what is left, "
        "or to 'latest' for what comes from now on, and resume it"
    )
    again.stop()
    third = engine()
    third.submit(reading(made, kept, on_lost="earliest"), resume=True)
    third.drain()
    assert sorted(kept.column("text")) == names(0, 100) + names(250, 300)
    assert (
        f"stage 'p.text' lost 150 rows of partition {made.name}/0, which were deleted before they were read: "
        "it goes on at offset 250, as on_lost is 'earliest'"
    ) in caplog.text


def test_records_that_expire_while_they_wait_are_passed_over_up_to_the_latest(
    engine: EngineFactory, topic: MakeTopic
) -> None:
    made, kept, runs = topic(1), Kept(), engine()
    running = runs.submit(reading(made, kept, on_lost="latest"))
    runs.drain()
    runs.pause("p")
    made.write(names(0, 100))
    eventually(lambda: running.rows_waiting == 100)
    made.delete_before(0, 60)
    eventually(lambda: running.rows_waiting == 0)
    runs.resume("p")
    made.write(names(100, 110))
    runs.drain()
    assert kept.column("text") == names(100, 110)


def test_a_window_stands_behind_a_queue_and_sees_every_row(engine: EngineFactory, topic: MakeTopic) -> None:
    made, kept, runs = topic(2), Kept(), engine()
    pipeline = Pipeline("p")
    stream = pipeline.source("records", sources.Kafka(made.servers, made.name))
    stream = stream.operator(
        "second",
        lambda rows: rows.selectExpr("timestamp_seconds(cast(cast(value as string) as bigint)) as at"),
    )
    stream.window("counted", on="at", size="10s", late="1h", aggregate="count(*) as n").sink("out", kept.sink)
    runs.submit(pipeline)
    made.write(str(number) for number in range(100))
    made.write([str(100 + 3700)])
    eventually(lambda: len(kept.rows) >= 10)
    assert sorted(kept.column("n"))[-10:] == [10] * 10
    assert [report.stage for report in runs.stages()] == ["p.second", "p.counted"]


def test_an_operator_that_fails_is_still_blamed(engine: EngineFactory, topic: MakeTopic) -> None:
    made, runs = topic(1), engine()
    pipeline = Pipeline("p")
    source = pipeline.source("records", sources.Kafka(made.servers, made.name))
    source.operator("bad", lambda rows: rows.selectExpr("raise_error('no such luck') as x")).sink(
        "out", Kept().sink
    )
    running = runs.submit(pipeline)
    made.write(["a"])
    eventually(lambda: running.state == "failed")
    assert re.search("operator 'bad' of pipeline 'p' failed: .*no such luck", str(running.error))


def test_a_password_lets_in_and_stands_in_no_log_and_no_state(
    engine: EngineFactory,
    topic: MakeTopic,
    broker: KafkaBroker,
    state: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, kept = topic(1), Kept()
    made.write(names(0, 10))
    caplog.set_level("DEBUG", logger="penstock")
    runs = engine()
    pipeline = Pipeline("p")
    source = pipeline.source("in", sources.Kafka(broker.locked, made.name, options=PASSWORD_OPTIONS))
    source.operator("text", lambda rows: rows.selectExpr("cast(value as string) as text")).sink(
        "out", kept.sink
    )
    runs.submit(pipeline)
    runs.drain()
    runs.stop()
    assert sorted(kept.column("text")) == names(0, 10)
    kept_files = [path.read_bytes() for path in state.rglob("*") if path.is_file()]
    assert PASSWORD not in caplog.text
    assert not any(PASSWORD.encode() in content for content in kept_files)


def test_a_wrong_password_stops_the_pipeline_with_the_broker_s_words(
    engine: EngineFactory, topic: MakeTopic, broker: KafkaBroker
) -> None:
    made, runs, pipeline = topic(1), engine(), Pipeline("p")
    wrong = {name: value.replace(PASSWORD, "high-tide") for name, value in PASSWORD_OPTIONS.items()}
    source = pipeline.source("in", sources.Kafka(broker.locked, made.name, options=wrong))
    source.sink("out", Kept().sink)
    running = runs.submit(pipeline)
    eventually(lambda: running.state == "failed")
    assert str(running.error) == (
        f"stage 'p.out' must be let in by Kafka at {broker.locked}, which says: "
        "Authentication failed: Invalid username or password: the pipeline stops"
    )


def test_settings_that_no_client_takes_are_refused_at_the_start(
    engine: EngineFactory, topic: MakeTopic
) -> None:
    made, pipeline = topic(1), Pipeline("p")
    options = {"kafka.security.protocol": "NONE"}
    pipeline.source("in", sources.Kafka(made.servers, made.name, options=options)).sink("out", Kept().sink)
    with pytest.raises(
        PenstockError, match=r"^Kafka's client must be able to work with the settings for .*NONE"
    ):
        engine().submit(pipeline)


def test_state_that_was_not_declared_is_refused(engine: EngineFactory, topic: MakeTopic) -> None:
    made, pipeline = topic(1), Pipeline("p")
    source = pipeline.source("records", sources.Kafka(made.servers, made.name))
    source.operator("once", lambda rows: rows.dropDuplicates(["value"])).sink("out", Kept().sink)
    with pytest.raises(PenstockError) as caught:
        engine().submit(pipeline)
    assert str(caught.value) == (
        "source 'records' of pipeline 'p', read by turns, must be in a stage without state, got Deduplicate: "
        "put a queue() before it, or declare the operator with state as stateful"
    )
