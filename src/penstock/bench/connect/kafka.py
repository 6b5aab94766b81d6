"""Kafka: topic to topic beside a plain query, topic into a spool, and what restarts and kills cost."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.bench.connect.drivers import Drivers
from penstock.bench.connect.found_rows import put_losses
from penstock.bench.connect.kafka_work import RECORD_CHARACTERS
from penstock.bench.connect.lives import ORDEAL, SLOTS
from penstock.bench.connect.ordeal import Ordeal
from penstock.bench.result import BenchResult, BenchSettings, at_least, at_most
from penstock.bench.stats import alternating, summary
from penstock.bench.workers import Worker
from penstock.errors import PenstockError
from penstock.spark.kafka.jars import BROKER, CONNECTOR
from penstock.workloads.kafka_broker import KafkaBroker

ROWS_PER_S = 50_000
RATIO = 1.05


@dataclass(frozen=True)
class Size:
    """Records of each run, rounds of both sides, and records that are sent at once in the ordeal.

    `caps` are the sizes of batches that plain Spark is tried with before, 0 for all in one: the best one
    counts. The first is tried twice where there is a choice, as cold code is nobody's measure.
    """

    rows: int
    rounds: int
    lot: int
    caps: tuple[int, ...]


FULL = Size(2_000_000, 5, 20_000, (0, 0, 500_000))
QUICK = Size(200_000, 2, 5_000, (0,))


def measure(settings: BenchSettings, result: BenchResult, drivers: Drivers) -> None:
    """`kafka_rows_per_s`, `kafka_ratio`, `kafka_lost` and `kafka_doubled`."""
    for jars in (CONNECTOR, BROKER):
        jars.install()
    size = QUICK if settings.quick else FULL
    drivers.begin(2)  # while the broker starts
    made = tempfile.TemporaryDirectory(prefix="penstock-connect-", ignore_cleanup_errors=True)
    with made as folder, KafkaBroker(partitions=SLOTS, heap_mb=1024) as broker:
        ours, plain = drivers.take(2)
        settings.say(f"{size.rows:,} records of {RECORD_CHARACTERS} characters")
        _fill((ours, plain), broker.servers, size.rows // 2)
        cap = _throughput(settings, result, Sides(broker.servers, ours, plain, size.rows), size)
        ordeal = Ordeal("kafka", broker.servers, Path(folder), settings.say)
        put_losses(result, "kafka", Path(folder), sent_over_blows(ordeal, broker, (ours, plain), size.lot))
        drivers.give_back(plain)
    result.setup["kafka"] = {
        "rows": size.rows,
        "record_characters": RECORD_CHARACTERS,
        "slots": SLOTS,
        "rows_of_a_plain_batch": cap or size.rows,
        "seconds": "from the start of query or pipeline until the broker has acknowledged the last record",
        "blows": ordeal.blows,
    }


def _fill(drivers: Sequence[Worker], servers: str, rows: int) -> None:
    """So many records from each driver, at the same time: both get warm."""

    def fill(place: int) -> None:
        drivers[place].ask(do="fill", servers=servers, topic="full", first=place * rows, rows=rows)

    with ThreadPoolExecutor() as threads:
        list(threads.map(fill, range(len(drivers))))


class Sides:
    """Our driver and that of plain Spark, asked for what is measured; every row must have arrived."""

    def __init__(self, servers: str, ours: Worker, plain: Worker, rows: int):
        self._servers = servers
        self._ours = ours
        self._plain = plain
        self._rows = rows
        self._numbers = itertools.count()

    def copy(self) -> float:
        return self._seconds(self._ours, do="copy", to=f"copy-{next(self._numbers)}")

    def plain_copy(self, cap: int) -> float:
        return self._seconds(self._plain, do="plain_copy", to=f"copy-{next(self._numbers)}", cap=cap)

    def spool(self) -> float:
        return self._seconds(self._ours, do="spool")

    def _seconds(self, driver: Worker, **asked: Any) -> float:
        answer = driver.ask(servers=self._servers, source="full", **asked)
        if answer["rows"] != self._rows:
            raise PenstockError(
                f"{asked['do']} must bring all {self._rows} records, brought {answer['rows']}: "
                "its seconds are no measure"
            )
        return float(answer["seconds"])


def _throughput(settings: BenchSettings, result: BenchResult, sides: Sides, size: Size) -> int:
    """The size of plain Spark's batches that was best, which is the one it is measured with."""
    settings.say("topic to topic")
    tried: dict[int, float] = {}
    for cap in size.caps:
        tried[cap] = sides.plain_copy(cap)
        sides.copy()  # each side runs as often
    best = min(tried, key=lambda cap: tried[cap])
    rounds = alternating(lambda: [sides.copy()], lambda: [sides.plain_copy(best)], size.rounds)
    # Plain Spark's throughput over ours: our seconds over its.
    result.put("kafka_ratio", rounds.ratio(), at_most(RATIO))
    result.put("kafka_copy_rows_per_s", summary([size.rows / each for each in rounds.all_a]))
    result.put("kafka_spark_copy_rows_per_s", summary([size.rows / each for each in rounds.all_b]))
    settings.say("topic into a spool")
    rates = [size.rows / sides.spool() for _ in range(size.rounds)]
    result.put("kafka_rows_per_s", summary(rates), at_least(ROWS_PER_S))
    return best


def sent_over_blows(ordeal: Ordeal, broker: KafkaBroker, drivers: tuple[Worker, Worker], lot: int) -> int:
    """While records keep coming the broker restarts, then the driver is killed. The records sent.

    The second driver feeds, and goes on where the first was killed.
    """
    first, second = drivers
    second.ask(do="feed", servers=broker.servers, topic=ORDEAL, lot=lot)
    ordeal.live(first)
    ordeal.restart(first, broker.restart)
    ordeal.kill(first)
    return ordeal.go_on(second, lambda: _fed(second, broker))


def _fed(feeder: Worker, broker: KafkaBroker) -> int:
    fed = feeder.ask(do="fed", servers=broker.servers, topic=ORDEAL)
    if fed["sent"] != fed["held"]:
        raise PenstockError(
            f"the topic must hold the {fed['sent']} records that were sent, holds {fed['held']}: "
            "what the pipeline lost or doubled cannot be told"
        )
    return int(fed["sent"])
