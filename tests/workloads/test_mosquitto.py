from __future__ import annotations

import pytest
from tests.spark.conftest import eventually

from penstock import sinks
from penstock.spark.mqtt_publisher import BrokerAway, Publisher
from penstock.workloads.mosquitto import Mosquitto, Subscriber, accepts, is_installed

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="mosquitto and mosquitto-clients are not installed"
)


def test_a_broker_keeps_its_port_and_its_sessions_over_a_restart() -> None:
    with Mosquitto() as broker:
        spec = sinks.Mqtt(broker.host, broker.port, "t")
        with Subscriber(broker, "t", keep=True) as subscriber:
            for text in ("before", "after"):
                with Publisher(spec, "test") as publisher:
                    publisher.publish([text])
                eventually(lambda text=text: subscriber.payloads[-1:] == [text])  # type: ignore[misc]
                port = broker.port
                broker.restart()
                assert broker.port == port
            assert subscriber.count == 2
    assert not accepts(broker.host, port)


@pytest.mark.parametrize("qos", [1, 2])
def test_a_subscriber_counts_every_message_once(qos: int) -> None:
    with Mosquitto() as broker, Subscriber(broker, "t") as subscriber:
        spec = sinks.Mqtt(broker.host, broker.port, "t", qos=qos)
        with Publisher(spec, "test") as publisher:
            for _ in range(3):
                publisher.publish(["x" * 100] * 3000)
        eventually(lambda: subscriber.count >= 9000)
        assert subscriber.count == 9000


def test_payloads_of_every_kind_and_length_come_as_they_were_sent() -> None:
    sent: list[str | bytes | None] = [
        "",
        None,
        "naïve",
        b"bytes",
        *("x" * length for length in (120, 130, 20_000, 300_000)),
    ]
    with Mosquitto() as broker, Subscriber(broker, "t", keep=True) as subscriber:
        with Publisher(sinks.Mqtt(broker.host, broker.port, "t"), "test") as publisher:
            publisher.publish(sent)
        eventually(lambda: len(subscriber.payloads) >= len(sent))
        assert subscriber.payloads == [
            "",
            "",
            "naïve",
            "bytes",
            "x" * 120,
            "x" * 130,
            "x" * 20_000,
            "x" * 300_000,
        ]


def test_a_message_too_long_for_mqtt_is_an_error_and_the_broker_is_not_blamed() -> None:
    class Long(bytes):
        def __len__(self) -> int:
            return 268_435_455

    with Mosquitto() as broker, Publisher(sinks.Mqtt(broker.host, broker.port, "t"), "test") as publisher:
        with pytest.raises(ValueError, match="an MQTT message must have 268,435,455 bytes at most"):
            publisher.publish(["before", Long(b"x")])
        assert publisher.connected
        publisher.publish(["after"])


def test_a_publisher_without_a_broker_says_so() -> None:
    with Mosquitto() as broker:
        spec = sinks.Mqtt(broker.host, broker.port, "t")
    publisher = Publisher(spec, "test")
    publisher.start()
    with pytest.raises(BrokerAway) as caught:
        publisher.publish(["x"])
    assert str(caught.value) == (
        f"MQTT broker 127.0.0.1:{spec.port} must acknowledge every message, but is not connected: "
        "the messages wait until it is there"
    )
    publisher.close()
