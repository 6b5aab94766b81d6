"""Sessions on a cluster of many small executors, all on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.spark.class_archive import archive_options
from penstock.spark.cluster.executors import ExecutorWatch
from penstock.spark.cluster.settings import EXECUTOR_OPTIONS, cluster_preset
from penstock.spark.feeders import wait_for
from penstock.spark.session import build_session, prepare_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKER_MEMORY = "512m"
START_SECONDS = 180.0
FEWER_THREADS = "-XX:TieredStopAtLevel=1 -XX:CICompilerCount=1 -XX:MaxMetaspaceSize=192m -Xms64m"
"""Sixteen JVMs that compile all they run, on two cores, would be all that is measured."""


def session_on(master: str, state: Path, more: Mapping[str, str] | None = None) -> SparkSession:
    """Executors as small as Spark lets them be."""
    options = f"{cluster_preset(master)[EXECUTOR_OPTIONS].value} {FEWER_THREADS} {archive_options()}"
    settings = {
        "spark.executor.memory": WORKER_MEMORY,
        EXECUTOR_OPTIONS: options,
        "spark.executor.cores": "1",
    }
    return build_session(master=master, state=state, settings={**settings, **(more or {})})


def await_executors(session: SparkSession, nodes: int) -> None:
    """Returns when so many are registered: managers that see fewer would ask for more."""
    prepare_session(session)
    watch = ExecutorWatch(session)
    try:
        if not wait_for(lambda: len(watch.executors()) >= nodes, START_SECONDS, 0.2):
            there = len(watch.executors())
            raise PenstockError(
                f"{nodes} executors must register within {START_SECONDS:g} s, but {there} did"
            )
    finally:
        watch.close()
