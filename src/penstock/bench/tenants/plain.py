"""The rivals: one streaming query for each job over a directory of Parquet files, on plain Spark."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.bench.plain_queries import Folder
from penstock.bench.tenants.feeder import Part
from penstock.bench.tenants.load import NOOP, FairSettings, Load
from penstock.bench.tenants.meter import Counts, ResultMeter, RowMeter, Turn, spread
from penstock.bench.tenants.side import SETTINGS
from penstock.workloads.tenants.arrivals import TICK_SECONDS
from penstock.workloads.tenants.events import PAYLOAD_SCHEMA, SCHEMA
from penstock.workloads.tenants.frames import FRAMES, LATE_SECONDS, parsed
from penstock.workloads.tenants.groups import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLLING = "50ms"
URGENT_WEIGHTS = (10, 100)
MOST_JOBS = 16
MOST_BATCH_SECONDS = 120.0


class FileLog:
    """Which files a query has read, from the logs that Spark writes into its checkpoint."""

    def __init__(self, checkpoint: Path):
        self._checkpoint = checkpoint
        self._read_to = -1

    def read_by(self, batch: int) -> list[str]:
        """The names of the files that this batch reads, and none that was passed."""
        numbers = range(self._read_to + 1, self._last_of(batch) + 1)
        return [name for number in numbers for name in self._entry(number)]

    def passed(self, batch: int) -> None:
        """The batch has ended."""
        self._read_to = max(self._last_of(batch), self._read_to)

    def _last_of(self, batch: int) -> int:
        offsets = (self._checkpoint / "offsets" / str(batch)).read_text().splitlines()
        return int(json.loads(offsets[-1])["logOffset"])

    def _entry(self, number: int) -> list[str]:
        log = self._checkpoint / "sources" / "0"
        path = log / str(number)
        if not path.exists():
            path = log / f"{number}.compact"
        entries = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        return [Path(entry["path"]).name for entry in entries if entry["batchId"] == number]


class PlainJob:
    """A job as a query of its own that runs whenever it finds files."""

    def __init__(
        self,
        session: SparkSession,
        job: Job,
        folder: Path,
        meter: ResultMeter | RowMeter,
        fair: FairSettings | None = None,
    ):
        self.job = job
        self._fair = fair
        self._session = session
        self._folder = folder
        self._meter = meter
        self._inbox = Folder(folder / "input")
        self._inbox.path.mkdir(parents=True)
        self._rows: dict[str, int] = {}
        self._log = FileLog(folder / "checkpoint")
        self._read: list[str] = []
        self.done: list[tuple[float, float, int]] = []
        """Of each batch that read anything: when it began and ended, and its rows."""
        self.query: StreamingQuery | None = None
        self._changed = threading.Condition()
        self._began: float | None = None
        self._batch = -1

    def start(self) -> None:
        # A query takes the pool of the thread that starts it; with FIFO it means nothing.
        pool = pool_of(self.job, self._fair or FairSettings())
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        writer = self._frame().writeStream.foreachBatch(self._on_batch).queryName(self.job.name)
        self.query = writer.option("checkpointLocation", str(self._folder / "checkpoint")).start()

    def _frame(self) -> DataFrame:
        # Never forgetting a file for its age.
        schema = PAYLOAD_SCHEMA if self.job.payload else SCHEMA
        reader = self._session.readStream.schema(schema).option("maxFileAge", "365d")
        if self.job.group == "bulk" and self._fair is not None and self._fair.cap_seconds is not None:
            files = max(round(self._fair.cap_seconds * files_per_second(self.job)), 1)
            reader = reader.option("maxFilesPerTrigger", files)
        rows = reader.parquet(str(self._inbox.path))
        if self.job.query == NOOP:
            return rows.coalesce(1)
        late = max(LATE_SECONDS, self.job.message_seconds)
        events = parsed(rows) if self.job.payload else rows
        return FRAMES[self.job.query](events, self.job.window_seconds, late, self.job.slide_count)

    def put(self, parts: Sequence[Part]) -> None:
        table = pa.concat_tables([rows for _, rows in parts])
        # Under the name that the folder gives to its next file; there is one feeder.
        self._rows[f"{len(self._rows) + 1:09d}.parquet"] = table.num_rows
        self._inbox.put(table)

    def _on_batch(self, frame: DataFrame, batch: int) -> None:
        with self._changed:
            self._began, self._batch = time.time(), batch
        self._meter.take(frame.toArrow(), batch)
        ended = time.time()
        # Spark has committed the batch before: without its files it has less to list.
        for name in self._read:
            (self._inbox.path / name).unlink(missing_ok=True)
        with self._changed:
            self._read = self._log.read_by(batch)
            self.done = self.counted(ended)
            self._log.passed(batch)
            self._began = None
            self._changed.notify_all()

    def counted(self, now: float) -> list[tuple[float, float, int]]:
        """What is done; a batch that runs counts as though it ended now, which is the most it can be."""
        with self._changed:
            if self._began is None:
                return list(self.done)
            rows = sum(self._rows[name] for name in self._log.read_by(self._batch))
            return [*self.done, (self._began, now, rows)] if rows else list(self.done)

    def end_batch(self, begun_by: float, seconds: float) -> None:
        """Waits until no batch runs that had begun by then: only then is it known how long its rows took."""
        with self._changed:
            self._changed.wait_for(lambda: self._began is None or self._began > begun_by, seconds)

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()

    @property
    def error(self) -> str:
        if self.query is None or self.query.isActive:
            return ""
        return f"{self.job.name}: {self.query.exception() or 'it ended by itself'}"


class Plain:
    """All jobs as queries of one session."""

    scheduler_seconds = 0.0
    turn_seconds = 0.0
    cuts = (0, 0)

    def __init__(self, folder: Path, slots: int, *, fair: bool):
        from penstock.spark.session import build_session

        own: dict[str, Any] = {
            "spark.sql.streaming.pollingDelay": POLLING,
            "spark.scheduler.mode": "FAIR" if fair else "FIFO",
        }
        if fair:
            allocation = folder / "pools.xml"
            allocation.write_text(pools())
            own["spark.scheduler.allocation.file"] = f"file://{allocation}"
        self._session = build_session(cores=slots, settings={**SETTINGS, **own})
        self._is_fair = fair
        self._jobs: dict[str, PlainJob] = {}
        self._batches_end: float | None = None

    def start(self, folder: Path, load: Load, meters: Mapping[str, ResultMeter | RowMeter]) -> None:
        for job in load.jobs:
            settings = load.fair if self._is_fair else None
            made = PlainJob(self._session, job, folder / job.name, meters[job.name], settings)
            self._jobs[job.name] = made
            made.start()

    def stop(self) -> None:
        jobs, self._jobs = self._jobs, {}
        self._batches_end = None
        for each in jobs.values():
            each.stop()

    def put(self, job: str, due: float, parts: Sequence[Part]) -> None:
        self._jobs[job].put(parts)

    def done(self, job: str, end: float) -> Counts:
        # Overloaded, a batch may be as long as the measured part: without it the rival would seem slower.
        if self._batches_end is None:
            self._batches_end = time.monotonic() + MOST_BATCH_SECONDS
        self._jobs[job].end_batch(end, max(self._batches_end - time.monotonic(), 0.0))
        return spread(self._jobs[job].counted(time.time()))

    @property
    def error(self) -> str:
        return "; ".join(each.error for each in self._jobs.values() if each.error)

    def turns(self, job: str) -> list[Turn]:
        return []

    def window_turns(
        self, job: str, completed: Mapping[float, float], came: Mapping[float, float]
    ) -> list[int]:
        return []


def files_per_second(job: Job) -> float:
    """How many files come for a job: one a tick in which any of its sources sends."""
    return min(job.sources / job.message_seconds, 1 / TICK_SECONDS)


def pool_of(job: Job, fair: FairSettings) -> str:
    """The pool of a job's query, by its weight."""
    return f"{job.name}-{fair.weight}" if job.group == "urgent" else job.name


def pools() -> str:
    """Spark's allocation file: a pool for each query; for urgent ones one of each weight, served first."""
    numbers = range(1, MOST_JOBS + 1)
    urgent = [(f"urgent-{number}-{weight}", weight, 1) for weight in URGENT_WEIGHTS for number in numbers]
    rows = [
        f'  <pool name="{name}"><schedulingMode>FIFO</schedulingMode>'
        f"<weight>{weight}</weight><minShare>{least}</minShare></pool>"
        for name, weight, least in (*urgent, *((f"bulk-{number}", 1, 0) for number in numbers))
    ]
    return "\n".join(['<?xml version="1.0"?>', "<allocations>", *rows, "</allocations>\n"])
