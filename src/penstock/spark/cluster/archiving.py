"""Makes the class archives: a worker and an executor run once, and leave what they loaded as they end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.spark.cluster.class_archive import KINDS, archive
from penstock.spark.cluster.daemon import ClusterError
from penstock.spark.cluster.settings import JAVA_OPTIONS, cluster_preset
from penstock.spark.cluster.standalone import StandaloneCluster, WorkerSize
from penstock.spark.session import build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = "512m"
END_SECONDS, QUERY_SECONDS = 90.0, 90
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def make_archives(folder: Path) -> tuple[Path, ...]:
    """Makes both anew, with a cluster of its own in `folder`; takes about half a minute."""
    made = {kind: archive(kind) for kind in KINDS}
    parts = {kind: path.with_suffix(f".{os.getpid()}") for kind, path in made.items()}
    for path in made.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    cluster = StandaloneCluster(folder, _leaving(parts["worker"]))
    try:
        cluster.up([WorkerSize(memory=MEMORY)])
        [worker] = cluster.workers()
        session = _session(cluster.url, folder / "state", parts["executor"])
        try:
            _work(session, folder)
            # Ended here: Spark would give it too little time to leave anything. Another takes its place, and
            # its file must not take that of the one that is kept.
            _end(worker.executors)
            parts["executor"].replace(made["executor"])
        finally:
            session.stop()
        _end([process] if (process := worker.process) else [])
        parts["worker"].replace(made["worker"])
    except FileNotFoundError as error:
        raise ClusterError(f"Java must leave an archive of its classes, but did not: {error}") from None
    finally:
        cluster.down()
        for path in parts.values():
            path.unlink(missing_ok=True)
    return tuple(made.values())


def _leaving(path: Path) -> str:
    return f" -XX:ArchiveClassesAtExit={path}"


def _session(url: str, state: Path, archived: Path) -> SparkSession:
    options = cluster_preset(url)[JAVA_OPTIONS].value + _leaving(archived)
    return build_session(
        master=url, state=state, settings={"spark.executor.memory": MEMORY, JAVA_OPTIONS: options}
    )


def _work(session: SparkSession, folder: Path) -> None:
    """A little of what turns do: Parquet, generated code, an exchange, state in RocksDB."""
    texts = folder / "texts"
    texts.mkdir()
    pq.write_table(pa.table({"number": [1, 2], "text": ["a b c", "a d"]}), texts / "texts.parquet")
    schema, words = "number BIGINT, text STRING", "explode(split(text, ' ')) AS word"
    counted = session.read.schema(schema).parquet(str(texts)).selectExpr(words).groupBy("word").count()
    counted.selectExpr("to_json(struct(word, count)) AS payload").toArrow()
    session.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    stream = session.readStream.schema(schema).parquet(str(texts)).selectExpr(words).groupBy("word").count()
    query = (
        stream.writeStream.outputMode("update")
        .format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    if not query.awaitTermination(QUERY_SECONDS):
        raise ClusterError(f"a query of two rows must end within {QUERY_SECONDS} s, but did not")


def _end(processes: Sequence[psutil.Process]) -> None:
    """Kindly, and until they have ended: what they loaded is written as they do."""
    for each in processes:
        each.terminate()
    _, left = psutil.wait_procs(list(processes), END_SECONDS)
    if left:
        raise ClusterError(f"a JVM must end within {END_SECONDS:g} s, but did not: no archive was made")
