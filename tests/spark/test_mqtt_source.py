"""A pipeline fed by a real MQTT broker."""

from __future__ import annotations

import pytest
from tests.spark.conftest import EngineFactory, eventually
from tests.spark.streams import Kept

from penstock import Pipeline, sinks, sources
from penstock.ingest.mqtt import MqttFeeder
from penstock.spark.mqtt_publisher import Publisher
from penstock.workloads.mosquitto import Mosquitto, is_installed

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not is_installed(), reason="mosquitto and its clients are not installed"),
]


def listening(broker: Mosquitto, kept: Kept) -> Pipeline:
    pipeline = Pipeline("p")
    messages = pipeline.source("messages", sources.Mqtt(broker.host, "sensors/+", broker.port))
    messages.parse("parse", "id LONG NOT NULL", keep="topic").sink("out", kept.sink)
    return pipeline


def test_messages_become_rows_bad_ones_dead_letters_and_a_stop_loses_none(engine: EngineFactory) -> None:
    kept = Kept()
    with (
        Mosquitto() as broker,
        Publisher(sinks.Mqtt(broker.host, broker.port, "sensors/a"), "t") as publisher,
    ):
        runs = engine()
        running = runs.submit(listening(broker, kept))
        eventually(lambda: isinstance(feeder := running.feeders[0], MqttFeeder) and feeder.connected)
        publisher.publish(['{"id": 1}', "nonsense", '{"id": 2}'])
        eventually(lambda: len(kept.rows) == 2 and len(runs.dead_letters("p")) == 1)
        assert runs.dead_letters("p").to_pylist()[0]["raw"] == "nonsense"
        runs.cancel("p")
        publisher.publish(['{"id": 3}'])
        runs.submit(listening(broker, kept))
        eventually(lambda: len(kept.rows) == 3)
    assert [(row["topic"], row["id"]) for row in kept.rows] == [("sensors/a", n) for n in (1, 2, 3)]
