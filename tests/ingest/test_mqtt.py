"""The MQTT source against a real broker: what it acknowledges is in the spool."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.conftest import eventually, rows_in

from penstock import Spool, sinks, sources
from penstock.ingest.mqtt import MqttFeeder
from penstock.secret import Secret, Tls
from penstock.spark.mqtt_publisher import Publisher
from penstock.workloads.certificates import can_certify, certify
from penstock.workloads.mosquitto import Mosquitto, is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason="mosquitto and its clients are not installed")


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with Mosquitto() as started:
        yield started


@contextmanager
def feeding(broker: Mosquitto, folder: Path, **settings: Any) -> Iterator[tuple[MqttFeeder, Spool]]:
    """A feeder that is subscribed."""
    limit = settings.pop("limit", None)
    with Spool(folder, limit_bytes=limit) as spool:
        spec = sources.Mqtt(broker.host, "sensors/#", broker.port, batch_seconds=0.02, **settings)
        feeder = MqttFeeder(spec, spool)
        feeder.start()
        try:
            eventually(lambda: feeder.connected)
            yield feeder, spool
        finally:
            feeder.stop()


def publish(broker: Mosquitto, payloads: list[Any], topic: str = "sensors/a", **settings: Any) -> None:
    with Publisher(sinks.Mqtt(broker.host, broker.port, topic, **settings), "test") as publisher:
        publisher.publish(payloads)


def values(spool: Spool) -> list[Any]:
    return [row["value"] for row in rows_in(spool)]


def test_messages_are_rows_with_topic_payload_and_arrival(broker: Mosquitto, tmp_path: Path) -> None:
    before = time.time()
    with feeding(broker, tmp_path / "q") as (feeder, spool):
        publish(broker, [f"{number}" for number in range(500)])
        publish(broker, ["x" * 100_000, b"not \xff UTF-8"], "sensors/b")
        eventually(lambda: spool.rows == 502 and feeder.done)
        found = rows_in(spool)
        arrivals = [bin for segment in spool.segments for bin in segment.arrivals.bins]
    assert [row["value"] for row in found[:500]] == [f"{number}" for number in range(500)]
    assert [row["topic"] for row in found] == ["sensors/a"] * 500 + ["sensors/b"] * 2
    assert [row["value"] for row in found[500:]] == ["x" * 100_000, "not \ufffd UTF-8"]
    assert all(before <= row["arrival"].timestamp() <= time.time() for row in found)
    assert sum(rows for _, rows in arrivals) == 502


def test_what_was_acknowledged_does_not_come_again_and_the_rest_waits_at_the_broker(
    broker: Mosquitto, tmp_path: Path
) -> None:
    with feeding(broker, tmp_path / "q") as (feeder, spool):
        publish(broker, ["a", "b"])
        eventually(lambda: spool.rows == 2 and feeder.done)
    publish(broker, ["c"])
    with feeding(broker, tmp_path / "q", format="binary") as (_, spool):
        eventually(lambda: spool.rows >= 3)
        publish(broker, ["d"])
        eventually(lambda: spool.rows >= 4)
        assert values(spool) == ["a", "b", b"c", b"d"]


def test_a_broker_that_restarts_loses_nothing_and_is_found_again(
    broker: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with feeding(broker, tmp_path / "q") as (feeder, spool):
        publish(broker, ["a"])
        eventually(lambda: spool.rows == 1)
        broker.stop()
        eventually(lambda: not feeder.connected)
        broker.start()
        eventually(lambda: feeder.connected)
        publish(broker, ["b"])
        eventually(lambda: "b" in values(spool))
        assert set(values(spool)) == {"a", "b"}
    told = [record.message for record in caplog.records]
    assert len(told) == 2
    assert told[0].startswith(f"'q' needs MQTT broker 127.0.0.1:{broker.port}, but the connection was lost (")
    assert told[1] == f"MQTT broker 127.0.0.1:{broker.port} is there again"


def test_a_full_spool_keeps_messages_at_the_broker_and_they_come_when_there_is_room(
    broker: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    payloads = [f"{number:0500d}" for number in range(300)]
    with feeding(broker, tmp_path / "q", limit=60_000, in_flight=50) as (_, spool):
        consumer = spool.subscribe("reader")
        publish(broker, payloads)
        eventually(lambda: "keeps its messages waiting" in caplog.text)
        assert 0 < spool.rows < 300
        seen: list[str] = []
        while len(seen) < 300:
            eventually(lambda: consumer.rows_waiting > 0)
            taken = consumer.take(None, tmp_path)
            seen += values(spool)
            consumer.commit(taken)
            consumer.release(taken)
    assert seen == payloads


def test_a_topic_that_the_settings_name_no_more_is_left(broker: Mosquitto, tmp_path: Path) -> None:
    with Spool(tmp_path / "q") as spool:
        for topic in ("old", "new"):
            feeder = MqttFeeder(sources.Mqtt(broker.host, topic, broker.port, batch_seconds=0.02), spool)
            feeder.start()
            eventually(lambda feeder=feeder: feeder.connected)
            feeder.stop()
        publish(broker, ["a"], "old")
        publish(broker, ["b"], "new")
        feeder = MqttFeeder(sources.Mqtt(broker.host, "new", broker.port), spool)
        feeder.start()
        eventually(lambda: spool.rows > 0 and feeder.done)
        feeder.stop()
        assert values(spool) == ["b"]


WORKER = """
import sys, time
from penstock import Spool, sources
from penstock.ingest.mqtt import MqttFeeder
spec = sources.Mqtt("127.0.0.1", "sensors/#", int(sys.argv[1]), batch_seconds=0.001)
feeder = MqttFeeder(spec, Spool(sys.argv[2]))
feeder.start()
while not feeder.connected:
    time.sleep(0.01)
print("connected", flush=True)
time.sleep(600)
"""


def test_a_receiver_killed_while_it_writes_has_lost_nothing(broker: Mosquitto, tmp_path: Path) -> None:
    folder = tmp_path / "q"
    for start in range(0, 6000, 3000):
        worker = [sys.executable, "-c", WORKER, str(broker.port), str(folder)]
        with subprocess.Popen(worker, stdout=subprocess.PIPE, text=True) as life:
            try:
                assert life.stdout is not None
                assert life.stdout.readline() == "connected\n"
                known = len(os.listdir(folder / "segments"))
                publish(broker, [f"{number}" for number in range(start, start + 3000)])
                eventually(lambda known=known: len(os.listdir(folder / "segments")) > known)
            finally:
                life.send_signal(signal.SIGKILL)
    with feeding(broker, folder) as (_, spool):
        eventually(lambda: len(set(values(spool))) == 6000)
        counts = Counter(values(spool))
    assert set(counts) == {f"{number}" for number in range(6000)}
    # Only what was in flight when a life ended can have come twice.
    assert max(counts.values()) <= 3


def test_a_session_that_the_broker_forgot_is_told_and_nothing_received_is_lost(
    broker: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with feeding(broker, tmp_path / "q") as (feeder, spool):
        publish(broker, ["a"])
        eventually(lambda: spool.rows == 1)
        broker.kill()
        eventually(lambda: not feeder.connected)
        Path(broker._folder.name, "mosquitto.db").unlink(missing_ok=True)
        broker.start()
        eventually(lambda: feeder.connected)
        publish(broker, ["b"])
        eventually(lambda: spool.rows == 2)
    told = "must keep the session of 'q', but has forgotten it"
    assert caplog.text.count(told) == 1
    broker.kill()
    Path(broker._folder.name, "mosquitto.db").unlink(missing_ok=True)
    broker.start()
    with feeding(broker, tmp_path / "q"):
        assert caplog.text.count(told) == 2


@pytest.mark.skipif(not can_certify(), reason="openssl is not installed")
def test_tls_and_password_serve_source_and_sink_and_no_secret_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = tmp_path / "password"
    secret.touch(0o600)
    secret.write_text("tr0ub4dor")
    certificate = certify(tmp_path)
    access = {
        "username": "ann",
        "password": Secret.from_file(secret),
        "tls": Tls(ca_file=certificate.cert_file),
    }
    with Mosquitto(user=("ann", "tr0ub4dor"), certificate=certificate) as broker:
        with feeding(broker, tmp_path / "q", **access) as (_, spool):
            publish(broker, [f"{number}" for number in range(2000)], **access)
            eventually(lambda: spool.rows >= 2000)
            assert values(spool) == [f"{number}" for number in range(2000)]
        secret.write_text("wrong")
        with Spool(tmp_path / "other") as other:
            feeder = MqttFeeder(sources.Mqtt(broker.host, "t", broker.port, **access), other)
            feeder.start()
            eventually(lambda: "but it refused the connection (Not authorized)" in caplog.text)
            feeder.stop()
    assert "tr0ub4dor" not in caplog.text + repr(access)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"qos": 0}, "qos must be 1, got 0: only then is a message acknowledged when it is durable"),
        ({"in_flight": 70_000}, "in_flight must be 1 to 65535, got 70000: MQTT has no more"),
        (
            {"batch_rows": 0},
            "a batch must take 0 s or more and 1 row or more, got 0.1 s and 0 rows: "
            "nothing would reach the queue",
        ),
        (
            {"password": Secret.from_env("P")},
            "a password must come with a username, got none: a broker would refuse it",
        ),
    ],
)
def test_settings_that_could_lose_messages_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        sources.Mqtt("127.0.0.1", "t", **settings)
