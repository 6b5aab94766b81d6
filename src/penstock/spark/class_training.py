"""A short life of Spark, at whose end its JVM writes the classes that it has loaded into an archive."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.spark.checkpoint import StateStore
from penstock.spark.jvm import jvm
from penstock.spark.session import DRIVER_OPTIONS, build_session, preset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
TURNS, ROWS = 3, 100
DRAIN_SECONDS = 60.0
EXIT_SECONDS = 60.0
CLUSTER_CLASSES = (
    "org.apache.spark.deploy.master.Master",
    "org.apache.spark.deploy.worker.Worker",
    "org.apache.spark.executor.CoarseGrainedExecutorBackend",
    "org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend",
)


def train(archive: Path) -> None:
    """Turns with and without state, on one slot and on two; and what executors begin with."""
    from pyspark import SparkContext

    options = f'{preset(CORES)[DRIVER_OPTIONS].value} "-XX:ArchiveClassesAtExit={archive}"'
    session = build_session(cores=CORES, settings={DRIVER_OPTIONS: options})
    stores: tuple[StateStore, ...] = ("rocksdb", "heap")
    for store in stores:
        with tempfile.TemporaryDirectory() as folder:
            _turns(session, Path(folder), store)
    _cluster(session)
    process = SparkContext._gateway.proc  # type: ignore[union-attr]
    session.stop()
    # The end of its input is the end of the JVM.
    process.stdin.close()
    process.wait(EXIT_SECONDS)


def _turns(session: SparkSession, folder: Path, store: StateStore) -> None:
    pipeline = Pipeline("training")
    spool = Spool(folder / "lines")
    lines = pipeline.source("lines", sources.FromSpool(spool, "value STRING"))
    readings = lines.parse("parsed", "sensor STRING, celsius DOUBLE NOT NULL, at TIMESTAMP")
    peaks = readings.window(
        "peaks", on="at", size="1s", by="sensor", aggregate="max(celsius) as peak", parallelism=CORES
    )
    peaks.sink("alarms", sinks.JsonLines(folder / "alarms"), latency="1s")
    warm = readings.operator("warm", lambda rows: rows.where("celsius > 25"))
    warm.sink("archive", sinks.Parquet(folder / "archive"))
    readings.sink("seen", sinks.Callback(lambda rows, turn: None))
    with spool, Engine(session, state=folder / "state", state_store=store) as engine:
        engine.submit(pipeline)
        for turn in range(TURNS):
            spool.append(pa.table({"value": [*_readings(4 * turn), "no reading"]}))
            engine.drain(DRAIN_SECONDS)


def _readings(second: int) -> list[str]:
    """Of four seconds."""
    return [
        json.dumps({"sensor": f"s{n % 7}", "celsius": n, "at": f"2026-01-01T00:00:{second + n % 4:02}Z"})
        for n in range(ROWS)
    ]


def _cluster(session: SparkSession) -> None:
    """What masters, workers and executors consist of, and what the latter do before their first task."""
    java = jvm(session)
    for name in CLUSTER_CLASSES:
        java.java.lang.Class.forName(name)
    java.penstock.WarmExecutors.warm(session.sparkContext._jsc.sc().conf())


if __name__ == "__main__":
    train(Path(sys.argv[1]))
