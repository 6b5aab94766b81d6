"""Kafka: topic to topic beside a plain query, topic into a spool, and what restarts and kills cost."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from penstock.bench.connect.kafka_worker import RECORD_CHARACTERS, SLOTS
from penstock.bench.result import BenchResult, BenchSettings, at_least, at_most
from penstock.bench.stats import alternating, single, summary
from penstock.bench.workers import Worker
from penstock.spark.kafka.jars import BROKER, CONNECTOR
from penstock.workloads.kafka_broker import KafkaBroker

WORKER = "penstock.bench.connect.kafka_worker"
ROWS_PER_S = 50_000
RATIO = 1.05


@dataclass(frozen=True)
class Size:
    """Records of each run, rounds of both sides, and records between two blows of the ordeal.

    `caps` are the sizes of batches that plain Spark is tried with, 0 for all in one: the best one counts.
    """

    rows: int
    rounds: int
    blow_rows: int
    caps: tuple[int, ...]


FULL = Size(2_000_000, 5, 100_000, (0, 500_000))
QUICK = Size(300_000, 2, 10_000, (0,))


def measure(settings: BenchSettings, result: BenchResult) -> None:
    """`kafka_rows_per_s`, `kafka_ratio`, `kafka_lost` and `kafka_doubled`."""
    for jars in (CONNECTOR, BROKER):
        jars.install()
    size = QUICK if settings.quick else FULL
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="penstock-connect-", ignore_cleanup_errors=True)
            )
        )
        broker = stack.enter_context(KafkaBroker(partitions=SLOTS, heap_mb=1024))
        sides = {side: stack.enter_context(_worker(folder, broker, side)) for side in ("spark", "penstock")}
        for worker in sides.values():
            worker.ready()
        settings.say(f"{size.rows:,} records of {RECORD_CHARACTERS} characters")
        half = size.rows // 2
        for place, worker in enumerate(sides.values()):
            worker.ask(do="fill", topic="full", first=place * half, rows=half)
        cap = _throughput(settings, result, sides, size)
        _ordeal(settings, result, broker, sides["spark"], folder, size)
    result.setup["kafka"] = {
        "rows": size.rows,
        "record_characters": RECORD_CHARACTERS,
        "slots": SLOTS,
        "rows_of_a_plain_batch": cap or size.rows,
        "seconds": "from the start of query or pipeline until the broker has acknowledged the last record",
    }


def _worker(folder: Path, broker: KafkaBroker, side: str) -> Worker:
    own = folder / side
    own.mkdir(exist_ok=True)
    return Worker(WORKER, own, "--side", side, "--servers", broker.servers)


def _throughput(settings: BenchSettings, result: BenchResult, sides: dict[str, Worker], size: Size) -> int:
    """The size of plain Spark's batches that was best, which is the one it is measured with."""
    numbers = itertools.count()

    def copy(side: str, **more: int) -> float:
        settings.say(f"topic to topic, {side}")
        asked = {"do": "copy", "from": "full", "to": f"copy-{next(numbers)}", **more}
        return float(sides[side].ask(**asked))

    tried: dict[int, float] = {}
    for cap in (size.caps[0], *size.caps):  # cold code is nobody's measure: each side runs as often
        tried[cap] = copy("spark", cap=cap)
        copy("penstock")
    best = min(tried, key=lambda cap: tried[cap])
    rounds = alternating(lambda: [copy("penstock")], lambda: [copy("spark", cap=best)], size.rounds)
    # Plain Spark's throughput over ours: our seconds over its.
    result.put("kafka_ratio", rounds.ratio(), at_most(RATIO))
    result.put("kafka_copy_rows_per_s", summary([size.rows / each for each in rounds.all_a]))
    result.put("kafka_spark_copy_rows_per_s", summary([size.rows / each for each in rounds.all_b]))
    settings.say("topic into a spool")
    spooled = [float(sides["penstock"].ask(**{"do": "spool", "from": "full"})) for _ in range(size.rounds)]
    rates = [size.rows / each for each in spooled]
    result.put("kafka_rows_per_s", summary(rates), at_least(ROWS_PER_S))
    return best


def _ordeal(
    settings: BenchSettings,
    result: BenchResult,
    broker: KafkaBroker,
    feeder: Worker,
    folder: Path,
    size: Size,
) -> None:
    """The broker restarts, the driver is killed; then what the folder holds is counted."""

    def feed(first: int) -> int:
        feeder.ask(do="fill", topic="ordeal", first=first, rows=size.blow_rows)
        return first + size.blow_rows

    fed = feed(0)
    with _worker(folder, broker, "life") as life:
        life.ready()
        fed = feed(fed)
        settings.say("the broker restarts")
        broker.restart()
        fed = feed(fed)
        settings.say("the driver is killed")
    fed = feed(fed)
    with _worker(folder, broker, "life") as life:
        life.ready()
        fed = feed(fed)
        life.ask(do="drain")
    found = Counter(pq.read_table(folder / "life" / "found")["id"].to_pylist())
    result.put("kafka_lost", single(fed - len(found)), at_most(0))
    result.put("kafka_doubled", single(sum(found.values()) - len(found)), at_most(0))
