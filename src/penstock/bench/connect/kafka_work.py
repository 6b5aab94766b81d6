"""What a driver does with topics of Kafka: fills them, copies them in plain Spark and in a pipeline."""

from __future__ import annotations

import shutil
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.bench.connect.feed import Feed
from penstock.bench.connect.lives import SLOTS
from penstock.spark.engine import PROFILES
from penstock.spark.kafka.source import READING
from penstock.spark.kafka.watch import look_at, topics_client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD_CHARACTERS = 100
DRAIN_SECONDS = 600.0


def made(rows: DataFrame) -> DataFrame:
    """The stage's work: every record stays, each with a new key."""
    return rows.where("length(value) > 0").selectExpr("substring(value, 1, 4) as key", "value")


class KafkaWork:
    """Each duty answers with JSON; those that are measured with their seconds and the rows that arrived."""

    def __init__(self, session: SparkSession, folder: Path):
        self._session = session
        self._folder = folder
        self._feed: Feed | None = None

    def fill(self, servers: str, topic: str, first: int, rows: int) -> int:
        """Writes records that are numbered from `first` on; the number after the last."""
        frame = self._session.range(first, first + rows, numPartitions=SLOTS).selectExpr(
            "cast(id as string) as key", f"rpad(cast(id as string), {RECORD_CHARACTERS}, 'x') as value"
        )
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", servers)
        writer.option("topic", topic).save()
        return first + rows

    def feed(self, servers: str, topic: str, lot: int) -> str:
        """Goes on filling, lot after lot, until asked what was fed."""
        self._feed = Feed(lambda first: self.fill(servers, topic, first, lot))
        return "feeding"

    def fed(self, servers: str, topic: str) -> dict[str, int]:
        """Ends the feed: the records it sent, and those that the topic holds."""
        assert self._feed is not None
        return {"sent": self._feed.end(), "held": self._held(servers, topic)}

    def plain_copy(self, servers: str, source: str, to: str, cap: int) -> dict[str, float]:
        """One query that reads all there is and ends, with our session's settings and those of our readers.

        `maxOffsetsPerTrigger` is at `cap`, or all goes in one batch where it is 0.
        """
        reader = self._session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        reader = reader.options(**{f"kafka.{name}": value for name, value in READING.items()})
        reader = reader.option("maxOffsetsPerTrigger", cap) if cap else reader
        frame = made(reader.option("subscribe", source).option("startingOffsets", "earliest").load())
        writer = frame.writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
        writer = writer.option("topic", to).option("checkpointLocation", str(self._fresh()))
        began = time.perf_counter()
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "rows": self._held(servers, to)}

    def copy(self, servers: str, source: str, to: str) -> dict[str, float]:
        """A pipeline of one stage, until nothing waits."""
        pipeline = Pipeline("copy")
        stream = pipeline.source("in", sources.Kafka(servers, source))
        stream.operator("made", made, parallelism=SLOTS).sink("out", sinks.Kafka(servers, to))
        return {"seconds": self._drained(pipeline), "rows": self._held(servers, to)}

    def spool(self, servers: str, source: str) -> dict[str, float]:
        pipeline = Pipeline("spool")
        stream = pipeline.source("in", sources.Kafka(servers, source))
        with Spool(self._fresh() / "spool") as spool:
            stream.operator("made", made, parallelism=SLOTS).sink("out", sinks.ToSpool(spool))
            return {"seconds": self._drained(pipeline), "rows": spool.rows}

    def _drained(self, pipeline: Pipeline) -> float:
        """From nothing but what earlier runs have taught of costs."""
        state, known = self._fresh(), self._folder / PROFILES
        if known.exists():
            shutil.copy(known, state / PROFILES)
        with Engine(self._session, state=state, slots=SLOTS) as engine:
            began = time.perf_counter()
            engine.submit(pipeline)
            engine.drain(DRAIN_SECONDS)
            seconds = time.perf_counter() - began
            engine.keep_profiles(self._folder)
            return seconds

    def _fresh(self) -> Path:
        """A folder of its own for each run."""
        path = self._folder / uuid.uuid4().hex[:12]
        path.mkdir()
        return path

    def _held(self, servers: str, topic: str) -> int:
        """The records of a topic, by its offsets."""
        client: Any = topics_client(self._session, servers, {})
        reaches = look_at(client, [topic], anew=True).reaches
        return sum(reach.end - reach.first for reach in reaches.values())
