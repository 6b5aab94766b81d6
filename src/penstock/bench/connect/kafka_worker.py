"""One side of `bench connect`, part kafka, in a process of its own: a JVM has one SparkContext.

Asked {"do": "fill", "topic", "first", "rows"} it writes numbered records; asked {"do": "copy", "from", "to"}
it brings all of a topic into another, and asked {"do": "spool", "from"} into a spool, and answers with the
seconds; plain Spark is told the `cap` of its batches. Side `life` is asked {"do": "drain"}.
"""

from __future__ import annotations

import argparse
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.bench.workers import serve
from penstock.spark.engine import PROFILES
from penstock.spark.kafka.source import READING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLOTS = 2
SETTINGS = {"spark.driver.memory": "2g"}
RECORD_CHARACTERS = 100
DRAIN_SECONDS = 600.0


def made(rows: DataFrame) -> DataFrame:
    """The stage's work: most records stay, each with a new key."""
    return rows.where("length(value) > 0").selectExpr("substring(value, 1, 4) as key", "value")


def text(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("cast(trim(TRAILING 'x' FROM cast(value as string)) as bigint) as id")


class Side:
    """What both sides can do."""

    def __init__(self, session: SparkSession, servers: str, folder: Path):
        self.session = session
        self.servers = servers
        self.folder = folder

    def fresh(self) -> Path:
        """A folder of its own for each run."""
        path = self.folder / uuid.uuid4().hex[:12]
        path.mkdir()
        return path

    def fill(self, topic: str, first: int, rows: int) -> float:
        frame = self.session.range(first, first + rows, numPartitions=SLOTS).selectExpr(
            "cast(id as string) as key", f"rpad(cast(id as string), {RECORD_CHARACTERS}, 'x') as value"
        )
        began = time.perf_counter()
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", self.servers)
        writer.option("topic", topic).save()
        return time.perf_counter() - began

    def answer(self, request: Mapping[str, Any]) -> Any:
        asked = dict(request)
        do: Callable[..., Any] = getattr(self, asked.pop("do"))
        return do(**{"source" if key == "from" else key: value for key, value in asked.items()})


class PlainSide(Side):
    """One query that reads all there is and ends, with our session's settings and those of our readers."""

    def copy(self, source: str, to: str, cap: int) -> float:
        """With `maxOffsetsPerTrigger` at `cap`, or all in one batch where it is 0."""
        reader = self.session.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        reader = reader.options(**{f"kafka.{name}": value for name, value in READING.items()})
        reader = reader.option("maxOffsetsPerTrigger", cap) if cap else reader
        frame = made(reader.option("subscribe", source).option("startingOffsets", "earliest").load())
        writer = frame.writeStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        writer = writer.option("topic", to).option("checkpointLocation", str(self.fresh()))
        began = time.perf_counter()
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return time.perf_counter() - began


class OurSide(Side):
    """A pipeline of one stage, until nothing waits."""

    def copy(self, source: str, to: str) -> float:
        pipeline = Pipeline("copy")
        stream = pipeline.source("in", sources.Kafka(self.servers, source))
        stream.operator("made", made, parallelism=SLOTS).sink("out", sinks.Kafka(self.servers, to))
        return self._drained(pipeline)

    def spool(self, source: str) -> float:
        pipeline = Pipeline("spool")
        stream = pipeline.source("in", sources.Kafka(self.servers, source))
        with Spool(self.fresh() / "spool") as spool:
            stream.operator("made", made, parallelism=SLOTS).sink("out", sinks.ToSpool(spool))
            return self._drained(pipeline)

    def _drained(self, pipeline: Pipeline) -> float:
        """From nothing but what earlier runs have taught of costs."""
        state, known = self.fresh(), self.folder / PROFILES
        if known.exists():
            shutil.copy(known, state / PROFILES)
        with Engine(self.session, state=state, slots=SLOTS) as engine:
            began = time.perf_counter()
            engine.submit(pipeline)
            engine.drain(DRAIN_SECONDS)
            seconds = time.perf_counter() - began
            engine.keep_profiles(self.folder)
            return seconds


class LifeSide(Side):
    """A pipeline that goes on where the life before it was killed: topic `ordeal` into a folder."""

    def __init__(self, session: SparkSession, servers: str, folder: Path):
        super().__init__(session, servers, folder)
        pipeline = Pipeline("ordeal")
        stream = pipeline.source("in", sources.Kafka(servers, "ordeal"))
        stream.operator("ids", text).sink("out", sinks.Parquet(folder / "found"))
        self._engine = Engine(session, state=folder / "ordeal", slots=SLOTS)
        self._engine.submit(pipeline)

    def drain(self) -> float:
        self._engine.drain(DRAIN_SECONDS)
        return 0.0


SIDES: Mapping[str, type[Side]] = {"spark": PlainSide, "penstock": OurSide, "life": LifeSide}


def main() -> None:
    from penstock.spark.session import build_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=tuple(SIDES), required=True)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    session = build_session(cores=SLOTS, settings=SETTINGS)
    side = SIDES[asked.side](session, asked.servers, asked.folder)
    serve("ready", side.answer)


if __name__ == "__main__":
    main()
