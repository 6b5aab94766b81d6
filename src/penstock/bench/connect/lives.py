"""Pipelines that are struck: from a connector into a spool, with a state that outlives the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.bench.connect.found_rows import FOUND, ids_in
from penstock.errors import PenstockError
from penstock.ingest.mqtt import MqttFeeder
from penstock.pipeline.stream import Stream
from penstock.spark.feeders import wait_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "bench/rows"
ORDEAL = "ordeal"
SCHEMA = "id LONG NOT NULL"
FILE_SCHEMA = "id LONG, sensor STRING, celsius DOUBLE"
SLOTS = 2
READY_SECONDS = 60.0
BUSY_SECONDS = 60.0
DRAIN_SECONDS = 300.0


def numbered(rows: DataFrame) -> DataFrame:
    """The id of a record of Kafka, which stands before what fills it up."""
    return rows.selectExpr("cast(trim(TRAILING 'x' FROM cast(value as string)) as bigint) as id")


def ids(rows: DataFrame) -> DataFrame:
    return rows.select("id")


def _kafka(pipeline: Pipeline, servers: str) -> Stream:
    return pipeline.source("rows", sources.Kafka(servers, ORDEAL)).operator("ids", numbered)


def _mqtt(pipeline: Pipeline, port: str) -> Stream:
    return pipeline.source("rows", sources.Mqtt("127.0.0.1", TOPIC, int(port))).parse("ids", SCHEMA)


def _http(pipeline: Pipeline, port: str) -> Stream:
    return pipeline.source("rows", sources.Http(int(port), SCHEMA)).operator("ids", ids)


def _files(pipeline: Pipeline, folder: str) -> Stream:
    rows = pipeline.source("rows", sources.Files(folder, "json", FILE_SCHEMA))
    return rows.operator("same", lambda frame: frame, parallelism=SLOTS)


KINDS: Mapping[str, Callable[[Pipeline, str], Stream]] = {
    "kafka": _kafka,
    "mqtt": _mqtt,
    "http": _http,
    "files": _files,
}
"""Rows with an id, as they come, from where a connector is told that they come from."""


class Lives:
    """One pipeline at a time, from `live` to `rest` or to the end of the process."""

    def __init__(self, session: SparkSession):
        self._session = session
        self._engine: Engine | None = None
        self._spool: Spool | None = None
        self._rows_at_blow = 0

    def live(self, kind: str, at: str, folder: str) -> str:
        """Begins, or goes on with what another process left in the folder."""
        self._spool = Spool(Path(folder, FOUND))
        self._engine = Engine(self._session, state=Path(folder, "state"), slots=SLOTS)
        pipeline = Pipeline(kind)
        KINDS[kind](pipeline, at).sink("found", sinks.ToSpool(self._spool))
        running = self._engine.submit(pipeline)
        links = [feeder for feeder in running.feeders if isinstance(feeder, MqttFeeder)]
        wait_for(lambda: all(link.connected for link in links), READY_SECONDS)
        self._rows_at_blow = self._spool.rows
        return "alive"

    def busy(self, rows: int) -> dict[str, Any]:
        """Answers in the middle of a turn, after so many rows have come since the last time: strike now."""
        engine, spool = self._parts()
        works = wait_for(
            lambda: spool.rows >= self._rows_at_blow + rows and bool(engine.in_line), BUSY_SECONDS, 0.001
        )
        if not works:
            raise PenstockError(
                f"a driver must bring {rows} rows and be in a turn to be struck, "
                f"but brought {spool.rows - self._rows_at_blow} in {BUSY_SECONDS:g} s"
            )
        self._rows_at_blow = spool.rows
        return {"rows_in_spool": self._rows_at_blow, "in_turn": sorted(engine.in_line)}

    def until(self, rows: int) -> int:
        """Waits until so many rows are in the spool; how many are."""
        _, spool = self._parts()
        wait_for(lambda: spool.rows >= rows, DRAIN_SECONDS, 0.005)
        return spool.rows

    def complete(self, rows: int) -> int:
        """As `until`, for different rows: what came twice must not hide what has not come yet."""
        self.until(rows)
        _, spool = self._parts()
        wait_for(lambda: pc.count_distinct(ids_in(spool)).as_py() >= rows, DRAIN_SECONDS, 0.5)
        return spool.rows

    def rest(self) -> str:
        """Ends when nothing waits; whoever opens the spool sees what came."""
        engine, _ = self._parts()
        engine.drain(DRAIN_SECONDS)
        self.end()
        return "at rest"

    def end(self) -> None:
        """Ends after the turns that run; what waits is for another life."""
        engine, spool = self._parts()
        engine.stop()
        spool.close()

    def _parts(self) -> tuple[Engine, Spool]:
        assert self._engine is not None
        assert self._spool is not None
        return self._engine, self._spool
