"""The RabbitMQ sink against a real node, read back by a consumer of its own."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import from_spool, readings, table

from penstock import Pipeline, Spool, sinks
from penstock.errors import PenstockError
from penstock.secret import Secret
from penstock.spark import mqtt_publisher
from penstock.spark.mqtt_publisher import BrokerAway, Publisher
from penstock.spark.rabbitmq_publisher import rabbit_link
from penstock.workloads.rabbitmq import RabbitMQ, is_installed

needs_node = pytest.mark.skipif(
    not is_installed() or importlib.util.find_spec("pika") is None,
    reason="rabbitmq-server or pika is not installed",
)
ROWS = readings(600, seconds=30)
IDS = {str(row["id"]) for row in ROWS}


@pytest.fixture(scope="module")
def node() -> Iterator[RabbitMQ]:
    with RabbitMQ() as started:
        yield started


def messages(node: RabbitMQ, queue: str) -> list[str]:
    """All that lies in a queue, taken out of it."""
    import pika

    connection = pika.BlockingConnection(pika.ConnectionParameters(node.host, node.port))
    try:
        channel = connection.channel()
        found = []
        while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
            found.append(got[2].decode())
        return found
    finally:
        connection.close()


def make_queue(node: RabbitMQ, queue: str) -> None:
    """A durable queue that outlives the node: one may be lost that was made just before it dies."""
    with Publisher(sinks.RabbitMq(node.host, queue, node.port), "make", link=rabbit_link()):
        pass
    node.restart()


def publishing(source: Spool, node: RabbitMQ) -> Pipeline:
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator("made", lambda frame: frame.selectExpr("cast(id as string) as payload"))
    stream.sink("out", sinks.RabbitMq(node.host, "out", node.port))
    return pipeline


@needs_node
@pytest.mark.slow
def test_messages_are_confirmed_and_what_no_queue_gets_is_told(
    node: RabbitMQ, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Publisher(sinks.RabbitMq(node.host, "plain", node.port), "test", link=rabbit_link()) as publisher:
        publisher.publish([str(number) for number in range(1200)])
        publisher.publish([None, b"\xc3\xa4"])
    assert messages(node, "plain") == [*(str(number) for number in range(1200)), "", "ä"]
    spec = sinks.RabbitMq(node.host, "nobody", node.port, exchange="amq.direct")
    with Publisher(spec, "lost", link=rabbit_link()) as publisher:
        with pytest.raises(BrokerAway):
            publisher.publish(["a"])
        where = f"'lost' needs RabbitMQ 127.0.0.1:{node.port}, but "
        eventually(lambda: where + "no queue gets messages with routing key 'nobody'" in caplog.text)
    monkeypatch.setattr(mqtt_publisher, "CONNECT_SECONDS", 1.0)
    monkeypatch.setenv("RABBIT", "tr0ub4dor")
    refused = sinks.RabbitMq(node.host, "plain", node.port, password=Secret.from_env("RABBIT"))
    with pytest.raises(BrokerAway), Publisher(refused, "wrong", link=rabbit_link()):
        pass
    assert "'wrong' needs RabbitMQ" in caplog.text
    assert "tr0ub4dor" not in caplog.text


@needs_node
@pytest.mark.slow
@pytest.mark.spark
def test_a_node_that_dies_and_comes_back_gets_every_row_and_its_stage_takes_no_slot_meanwhile(
    node: RabbitMQ, engine: EngineFactory, spool: SpoolFactory
) -> None:
    make_queue(node, "out")
    source, runs = spool(), engine()
    running = runs.submit(publishing(source, node))
    source.append(table(ROWS[:200]))
    runs.drain()
    node.kill()
    eventually(lambda: not running.stages[0].may_run)
    source.append(table(ROWS[200:]))
    eventually(lambda: running.rows_waiting == 400)
    assert set(runs._dispatcher._scheduler.running) == set()
    node.start()
    runs.drain(120)
    found = messages(node, "out")
    assert set(found) == IDS
    assert len(found) == 600


def test_a_missing_package_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    text = "sinks.RabbitMq needs the package pika, which is not installed: pip install 'penstock[rabbitmq]'"
    with pytest.raises(PenstockError, match=f"^{re.escape(text)}$"):
        rabbit_link()


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"routing_key": ""},
            "a routing key or an exchange must be named, got neither: no queue would get a row",
        ),
        (
            {"routing_key": "q", "keepalive_seconds": 0},
            "keepalive must be 1 s or more, got 0 s: a broker that is gone would not be noticed",
        ),
    ],
)
def test_settings_that_could_lose_messages_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        sinks.RabbitMq("127.0.0.1", **settings)
