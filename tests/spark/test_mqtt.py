"""The MQTT sink against a real broker, read back by a real subscriber."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, from_spool, readings, table

from penstock import Engine, Pipeline, Spool, sinks
from penstock.errors import PenstockError
from penstock.spark import mqtt_publisher
from penstock.spark.mqtt_publisher import UNACKNOWLEDGED, BrokerAway, MqttLink, Publisher
from penstock.workloads.mosquitto import Mosquitto, Subscriber, free_port, is_installed

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not is_installed(), reason="mosquitto and mosquitto-clients are not installed"),
]
ROWS = readings(600, seconds=30)
IDS = [str(row["id"]) for row in ROWS]


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with Mosquitto() as started:
        yield started


def payloads(frame: Any) -> Any:
    return frame.selectExpr("id", "cast(id as string) as payload")


def publishing(source: Spool, broker: Mosquitto) -> Pipeline:
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source)).operator("made", payloads)
    stream.sink("out", sinks.Mqtt(broker.host, broker.port, "t"))
    return pipeline


def counted(source: Spool, kept: Kept, name: str = "other") -> Pipeline:
    pipeline = Pipeline(name)
    pipeline.source("readings", from_spool(source)).sink("out", kept.sink)
    return pipeline


def in_turns(runs: Engine) -> set[str]:
    return set(runs._dispatcher._scheduler.running)


def freeze(broker: Mosquitto) -> int:
    """The broker's process, which does nothing any more until it gets SIGCONT."""
    assert broker._process is not None
    os.kill(broker._process.pid, signal.SIGSTOP)
    return broker._process.pid


def test_the_subscriber_gets_each_row_once_when_all_goes_well(
    engine: EngineFactory, spool: SpoolFactory, broker: Mosquitto
) -> None:
    source, runs = spool(), engine()
    with Subscriber(broker, "t", keep=True) as subscriber:
        runs.submit(publishing(source, broker))
        for start in range(0, 600, 200):
            source.append(table(ROWS[start : start + 200]))
        runs.drain()
        [sink] = runs.sinks()
        assert sink.latency.count == 600
        eventually(lambda: subscriber.count >= 600)
        assert Counter(subscriber.payloads) == Counter(IDS)


def test_a_broker_that_is_stopped_and_started_again_gets_every_row_and_nothing_else_stops(
    engine: EngineFactory, spool: SpoolFactory, broker: Mosquitto, caplog: pytest.LogCaptureFixture
) -> None:
    source, other, kept, runs = spool(), spool("other"), Kept(), engine()
    with Subscriber(broker, "t", keep=True) as subscriber:
        runs.submit(publishing(source, broker))
        runs.submit(counted(other, kept))
        source.append(table(ROWS[:200]))
        eventually(lambda: subscriber.count >= 200)
        broker.stop()
        source.append(table(ROWS[200:400]))
        other.append(table(ROWS))
        eventually(lambda: len(kept.rows) == 600)
        eventually(lambda: not in_turns(runs))
        assert subscriber.count < 400
        assert runs.pipelines == {"p": "running", "other": "running"}
        broker.start()
        source.append(table(ROWS[400:]))
        runs.drain()
        eventually(lambda: set(subscriber.payloads) == set(IDS))
    told = [record.message for record in caplog.records if "MQTT broker" in record.message]
    where = f"MQTT broker 127.0.0.1:{broker.port}"
    assert told == [
        f"'p.made' needs {where}, but the connection was lost: its messages wait until the broker is there",
        f"{where} is there again",
    ]


def test_rows_of_a_turn_that_a_dying_broker_broke_off_are_published_again(
    engine: EngineFactory, spool: SpoolFactory, broker: Mosquitto
) -> None:
    source, runs = spool(), engine()
    running = runs.submit(publishing(source, broker))
    source.append(table(ROWS[:100]))
    runs.drain()
    freeze(broker)
    source.append(table(ROWS[100:]))
    eventually(lambda: in_turns(runs) == {"p.made"} and running.rows_waiting == 0)
    broker.kill()
    eventually(lambda: not in_turns(runs))
    assert running.rows_waiting == 500
    runs.pause("p")
    broker.start()
    with Subscriber(broker, "t", keep=True) as subscriber:
        runs.resume("p")
        runs.drain()
        eventually(lambda: set(subscriber.payloads) == set(IDS[100:]))
    [report] = runs.stages()
    assert report.figures.rows_in == 600


def test_a_broker_that_is_not_there_at_the_start_is_told_once_and_waited_for(
    engine: EngineFactory, spool: SpoolFactory, caplog: pytest.LogCaptureFixture
) -> None:
    source, runs = spool(), engine()
    port = free_port()
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source)).operator("made", payloads)
    stream.sink("out", sinks.Mqtt("127.0.0.1", port))
    runs.submit(pipeline)
    source.append(table(ROWS))
    told = f"'p.made' needs MQTT broker 127.0.0.1:{port}, but it cannot be reached ("
    eventually(lambda: told in caplog.text)
    began = time.monotonic()
    eventually(lambda: time.monotonic() > began + 1)
    assert caplog.text.count("needs MQTT broker") == 1
    assert in_turns(runs) == set()
    began = time.monotonic()
    runs.stop()
    assert time.monotonic() - began < 5


def test_an_engine_stops_at_once_though_the_broker_has_gone(
    engine: EngineFactory, spool: SpoolFactory, broker: Mosquitto
) -> None:
    source, runs = spool(), engine()
    running = runs.submit(publishing(source, broker))
    source.append(table(ROWS[:100]))
    runs.drain()
    broker.kill()
    source.append(table(ROWS[100:]))
    eventually(lambda: not in_turns(runs) and not running.stages[0].may_run)
    began = time.monotonic()
    runs.stop()
    assert time.monotonic() - began < 5
    broker.start()
    with Subscriber(broker, "t", keep=True) as subscriber:
        again = engine()
        again.submit(publishing(source, broker))
        again.drain()
        eventually(lambda: set(subscriber.payloads) == set(IDS[100:]))


def test_a_broker_that_hangs_is_given_up_and_found_again(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_publisher, "SILENCE_SECONDS", 0.6)
    with Publisher(sinks.Mqtt(broker.host, broker.port, "t"), "test") as publisher:
        publisher.publish(["a"])
        frozen = freeze(broker)
        with pytest.raises(BrokerAway, match=r", but was silent for 0\.6 s: "):
            publisher.publish(["b"])
        os.kill(frozen, signal.SIGCONT)
        eventually(lambda: publisher.connected)
        publisher.publish(["c"])


def test_only_so_many_messages_are_under_way_however_large_a_turn_is(broker: Mosquitto) -> None:
    with Publisher(sinks.Mqtt(broker.host, broker.port, "t"), "test") as publisher:
        link = publisher._link
        assert isinstance(link, MqttLink)
        assert link._tap is not None
        send, seen = link._tap.send, []

        def watched(messages: bytes) -> int:
            if messages[0] == 0x32:  # and not what paho sends to end the connection
                seen.append(link._acks.sent - link._acks.count)
            return send(messages)

        link._tap.send = watched  # type: ignore[method-assign, assignment]
        publisher.publish(["m"] * 10_000)
        assert link._acks.count == 10_000
    assert len(seen) == 10
    assert max(seen) <= UNACKNOWLEDGED == 2_000


def test_a_connection_that_the_broker_refuses_is_told_with_its_reason(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_publisher, "CONNECT_SECONDS", 1.0)
    with (
        Mosquitto(anonymous=False) as broker,
        pytest.raises(BrokerAway, match=r"cannot be reached"),
        Publisher(sinks.Mqtt(broker.host, broker.port), "test"),
    ):
        pass
    assert "but it refused the connection (Not authorized)" in caplog.text


def test_rows_without_the_payload_column_are_refused_at_the_start(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(spool())).sink("out", sinks.Mqtt("127.0.0.1"))
    with pytest.raises(PenstockError) as caught:
        engine().submit(pipeline)
    assert str(caught.value) == (
        "sink 'out' of pipeline 'p' must be given the column 'payload', got id, sensor, value, ts: "
        "there would be nothing to write"
    )


def test_state_that_was_not_declared_is_refused_before_a_sink_that_may_be_away(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(spool()))
    stream = stream.operator("once", lambda frame: payloads(frame.dropDuplicates(["id"])))
    stream.sink("out", sinks.Mqtt("127.0.0.1"))
    with pytest.raises(PenstockError) as caught:
        engine().submit(pipeline)
    assert str(caught.value) == (
        "sink 'out' of pipeline 'p', which may be away, must be in a stage without state, got Deduplicate: "
        "put a queue() before it, or declare the operator with state as stateful"
    )


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"qos": 0}, "qos must be 1 or 2, got 0: messages could be lost unnoticed"),
        (
            {"topic": "a/#"},
            "a topic to publish to must be a name without '+' and '#', got 'a/#': a broker would refuse it",
        ),
        (
            {"keepalive_seconds": 0},
            "keepalive must be 1 s or more, got 0 s: a broker that is gone would not be noticed",
        ),
    ],
)
def test_settings_that_could_lose_messages_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        sinks.Mqtt("127.0.0.1", **settings)
