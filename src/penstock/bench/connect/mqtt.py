"""MQTT: what waits at a broker into a spool, and what a restart of the broker and a killed driver cost."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.connect.drivers import Drivers
from penstock.bench.connect.feed import Feed
from penstock.bench.connect.found_rows import put_losses
from penstock.bench.connect.lives import TOPIC
from penstock.bench.connect.ordeal import Ordeal
from penstock.bench.result import BenchResult, BenchSettings, at_least
from penstock.bench.stats import summary
from penstock.errors import PenstockError
from penstock.ingest.mqtt import MqttFeeder
from penstock.pipeline.sources import Mqtt
from penstock.queues.spool import Spool
from penstock.spark.feeders import wait_for
from penstock.workloads.mosquitto import Mosquitto, command, is_installed

ROWS_PER_S = 50_000
LIMIT_SECONDS = 300.0
# mosquitto_pub numbers its messages with 16 bits, and loses some where more are under way.
LOT = 40_000
ORDEAL_LOT, ORDEAL_ROWS_PER_S = 500, 10_000
AGAIN_SECONDS = 0.1


@dataclass(frozen=True)
class Size:
    """Messages of each round, and rounds."""

    rows: int
    rounds: int


FULL = Size(400_000, 5)
QUICK = Size(80_000, 1)


def measure(settings: BenchSettings, result: BenchResult, drivers: Drivers) -> None:
    """`mqtt_rows_per_s`, `mqtt_lost` and `mqtt_doubled`: MQTT's QoS 1 is at least once."""
    if not is_installed():
        raise PenstockError(
            "mosquitto and its clients must be installed to be measured with, but are not "
            "(Debian, Ubuntu: sudo apt-get install mosquitto mosquitto-clients)"
        )
    size = QUICK if settings.quick else FULL
    rates = [_rate(settings, size.rows, number) for number in range(size.rounds)]
    result.put("mqtt_rows_per_s", summary(rates), at_least(ROWS_PER_S))
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="penstock-connect-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(made))
        broker = stack.enter_context(Mosquitto())
        ordeal = Ordeal("mqtt", str(broker.port), folder, settings.say)
        sent = sent_over_blows(ordeal, drivers, broker)
        put_losses(result, "mqtt", folder, sent, exactly_once=False)
    result.setup["mqtt"] = {"rows": size.rows, "rounds": size.rounds, "blows": ordeal.blows}


def sent_over_blows(ordeal: Ordeal, drivers: Drivers, broker: Mosquitto) -> int:
    """While messages keep coming the broker restarts, then the driver is killed. The messages sent."""
    [first] = drivers.take()
    ordeal.live(first)
    feed = Feed(lambda number: publish(broker, number, ORDEAL_LOT), ORDEAL_LOT / ORDEAL_ROWS_PER_S)
    ordeal.restart(first, broker.restart)
    return ordeal.killed_once(first, drivers, feed.end)


def _rate(settings: BenchSettings, rows: int, number: int) -> float:
    """Messages that wait at the broker, by the second, from the connection on until all are durable."""
    settings.say(f"round {number + 1}: {rows:,} messages from broker to spool")
    with Mosquitto() as broker, tempfile.TemporaryDirectory() as folder, Spool(folder) as spool:
        spec = Mqtt(broker.host, TOPIC, broker.port)
        first = MqttFeeder(spec, spool)
        first.start()
        wait_for(lambda: first.connected, LIMIT_SECONDS)
        first.stop()
        publish(broker, 0, rows)
        feeder = MqttFeeder(spec, spool)
        began = time.monotonic()
        feeder.start()
        try:
            if not wait_for(lambda: spool.rows >= rows, LIMIT_SECONDS, 0.005):
                raise PenstockError(f"{rows} messages must reach the spool, but {spool.rows} did")
            return rows / (time.monotonic() - began)
        finally:
            feeder.stop()


def publish(broker: Mosquitto, first: int, rows: int) -> int:
    """Rows with ids from `first` on, all acknowledged by the broker; the id after the last."""
    program = command("mosquitto_pub")
    assert program is not None
    for lot in _lots(first, rows):
        text = "".join(f'{{"id": {id}, "sensor": "s{id % 100}", "celsius": 20.5}}\n' for id in lot)
        address = ["-h", broker.host, "-p", str(broker.port), "-t", TOPIC, "-q", "1", "-l"]
        # It fails where the broker is away as it begins: then the lot is sent again.
        while subprocess.run([program, *address], input=text.encode(), capture_output=True).returncode:
            time.sleep(AGAIN_SECONDS)
    return first + rows


def _lots(first: int, rows: int) -> Iterator[range]:
    for start in range(first, first + rows, LOT):
        yield range(start, min(start + LOT, first + rows))
