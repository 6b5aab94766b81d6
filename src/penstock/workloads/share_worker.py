"""Runs one side of the shared pool in a process of its own, and tells what happens as lines of JSON.

`python -m penstock.workloads.share_worker --side penstock --seconds 40 --folder DIR`. Events: `source` (when
a pipeline's source was created), `started` (all pipelines run), `batch` (a result is at the sink), `turn`
(one under our scheduler has ended), and at last `ended` or `failed`. It ends at once, and removes its folder,
when its input is closed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from penstock.workloads.shared_pool import LOADS, PARTITIONS, SLOTS, Load, side_named

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.measure.turns import TurnRecord

LOOK_SECONDS = 0.2


class Lines:
    """Writes events to what was the standard output; anything else that is printed goes to the errors."""

    def __init__(self) -> None:
        self._file: TextIO = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self._lock = threading.Lock()

    def tell(self, event: str, **told: Any) -> None:
        line = json.dumps({"event": event, **told})
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()


class Sink:
    """Takes a pipeline's results and tells of them. The offsets of a batch are logged before it runs."""

    def __init__(self, load: Load, folder: Path, lines: Lines):
        self._load = load
        self._folder = folder
        self._lines = lines
        self._checkpoint: Path | None = None

    def _logged(self, what: str) -> list[str]:
        """The lines of a file in the query's checkpoint, which Spark writes; none before it has."""
        if self._checkpoint is None:
            self._checkpoint = next(self._folder.rglob("checkpoint"), None)
        log = self._checkpoint / what if self._checkpoint else None
        return log.read_text().splitlines() if log is not None and log.exists() else []

    def take(self, table: pa.Table, batch: int) -> None:
        from penstock.spark.results import window_ends

        at = time.time()
        windows = list(zip(window_ends(table), table["n"].to_pylist(), strict=True))
        read = int(self._logged(f"offsets/{batch}")[-1])
        self._lines.tell("batch", pipeline=self._load.name, at=at, seconds_read=read, windows=windows)

    def collect(self, frame: DataFrame, batch: int) -> None:
        """The same, as foreachBatch calls it."""
        self.take(frame.toArrow(), batch)

    def created_ms(self) -> int | None:
        """When Spark created the source, as it keeps it for a restart; None before it has."""
        lines = self._logged("sources/0/0")
        return int(lines[1]) if len(lines) > 1 else None


class Runner(Protocol):
    """Runs pipelines in one way."""

    def start(self, load: Load, lines: Lines) -> Sink: ...

    def error(self) -> str:
        """Why a pipeline has ended, empty while all run."""
        ...


class SparkRunner:
    """Structured Streaming as it is: each query begins its next batch when it has ended the last."""

    def __init__(self, session: SparkSession, folder: Path):
        self._session = session
        self._folder = folder
        self._queries: list[StreamingQuery] = []

    def start(self, load: Load, lines: Lines) -> Sink:
        folder = self._folder / "queries" / load.name
        sink = Sink(load, folder, lines)
        # A query takes the pool of the thread that starts it; with FIFO it means nothing.
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", load.name)
        writer = load.frame(self._session).writeStream.foreachBatch(sink.collect).queryName(load.name)
        self._queries.append(writer.option("checkpointLocation", str(folder / "checkpoint")).start())
        return sink

    def error(self) -> str:
        return "; ".join(f"{each.name}: {each.exception()}" for each in self._queries if not each.isActive)


class PenstockRunner:
    """The same queries, adopted by an engine."""

    def __init__(self, session: SparkSession, folder: Path):
        from penstock import Engine

        self._state = folder / "state"
        self._engine = Engine(session, state=self._state, slots=SLOTS)

    def start(self, load: Load, lines: Lines) -> Sink:
        from penstock import sinks

        sink = Sink(load, self._state / load.name, lines)
        if not self._engine.pipelines:
            self._engine.on_turn(partial(_tell_turn, lines))
        frame = load.frame(self._engine.spark)
        self._engine.start(frame, sinks.Callback(sink.take), latency=load.target_seconds, name=load.name)
        return sink

    def error(self) -> str:
        failed = [name for name, state in self._engine.pipelines.items() if state == "failed"]
        return "; ".join(f"{name}: {self._engine.error(name)}" for name in failed)


def _tell_turn(lines: Lines, record: TurnRecord) -> None:
    """What a turn took: a simulation of the same run goes by that."""
    told = {"granted_at": record.granted_at, "rows": record.rows_in, "slots": record.slots}
    lines.tell("turn", pipeline=record.pipeline, seconds=record.turn_seconds, **told)


def plain_session(settings: dict[str, str]) -> SparkSession:
    """Spark's defaults, less what would only handicap it: 200 tasks a batch, re-planning, and its pages."""
    from pyspark.sql import SparkSession

    chosen = {
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **settings,
    }
    builder = SparkSession.builder.master(f"local[{SLOTS}]").appName("plain Spark")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def pools(loads: Sequence[Load]) -> str:
    """Spark's allocation file: a pool for each query, the urgent ones first and with ten times the weight."""
    rows = [
        f'  <pool name="{load.name}"><schedulingMode>FIFO</schedulingMode>'
        f"<weight>{10 if load.group == 'urgent' else 1}</weight>"
        f"<minShare>{1 if load.group == 'urgent' else 0}</minShare></pool>"
        for load in loads
    ]
    return "\n".join(['<?xml version="1.0"?>', "<allocations>", *rows, "</allocations>\n"])


def runner_for(side: str, folder: Path) -> Runner:
    from penstock.spark.session import build_session

    settings = {"spark.local.dir": str(folder / "local"), "spark.sql.shuffle.partitions": str(PARTITIONS)}
    if side == "spark":
        return SparkRunner(plain_session(settings), folder)
    if side == "tuned":
        return SparkRunner(
            build_session(cores=SLOTS, settings=settings | {"spark.scheduler.mode": "FIFO"}), folder
        )
    if side == "fair":
        (folder / "pools.xml").write_text(pools(LOADS))
        settings |= {"spark.scheduler.allocation.file": f"file://{folder / 'pools.xml'}"}
        return SparkRunner(build_session(cores=SLOTS, settings=settings), folder)
    return PenstockRunner(build_session(cores=SLOTS, settings=settings), folder)


def run(runner: Runner, seconds: float, lines: Lines) -> None:
    """Starts all pipelines, and returns when they have run for `seconds`, or one of them has failed."""
    unknown = {load.name: runner.start(load, lines) for load in LOADS}
    begun = time.time()
    lines.tell("started", at=begun)
    while time.time() < begun + seconds:
        for name, sink in tuple(unknown.items()):
            if (created := sink.created_ms()) is not None:
                lines.tell("source", pipeline=name, created_ms=created)
                del unknown[name]
        if why := runner.error():
            lines.tell("failed", why=why)
            return
        time.sleep(min(LOOK_SECONDS, max(begun + seconds - time.time(), 0.0)))
    lines.tell("ended", at=time.time())


def end_with_input(folder: Path) -> None:
    """Ends this process and Spark's, and removes what they wrote, when whoever started it has gone."""
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", required=True, type=lambda text: side_named(text).key)
    parser.add_argument("--seconds", required=True, type=float, help="how long all pipelines run")
    parser.add_argument("--folder", required=True, type=Path, help="for checkpoints, state and shuffles")
    asked = parser.parse_args()
    lines = Lines()
    if os.getpgrp() == os.getpid():
        threading.Thread(target=end_with_input, args=(asked.folder,), daemon=True).start()
    run(runner_for(asked.side, asked.folder), asked.seconds, lines)
    # Neither side is wound up in order: what it still works on is of no interest, and may take long.
    os._exit(0)


if __name__ == "__main__":
    main()
