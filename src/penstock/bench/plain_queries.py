"""The rival: one always-on streaming query for each stage, on plain Spark.

One worker per operation, as the baseline of EdgeWise. The operators, the sinks, the Parquet segments between
the queries and the tuned checkpoints are those of Penstock. Who decides what runs next differs, and what a
micro-batch of plain Spark costs: it is planned each time and runs as a job.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.measure.turns import TurnRecord
from penstock.queues.disk import Disk
from penstock.queues.parquet import encode
from penstock.spark.each_turn import EachTurn
from penstock.spark.end_catalog import Writer, end_for
from penstock.spark.ends import End
from penstock.spark.results import DEAD_LETTER, RAW, Dating, Result, Rows, split_table
from penstock.spark.turn_input import TurnInput
from penstock.stages.build import build
from penstock.stages.stage import Stage, StageGraph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

# As many as a step can have, so that each can be read when the step is over.
PROGRESS_KEPT = 2000
IDLE_SECONDS = 1.0


@dataclass
class Folder:
    """A queue as a directory of Parquet segments, read by Spark's file source."""

    path: Path
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, table: pa.Table, now: float = 0.0) -> None:
        """Adds a segment: written under a hidden name, then shown by a rename."""
        if table.num_rows == 0:
            return
        with self._lock:
            self._count += 1
            name = f"{self._count:09d}.parquet"
        hidden = self.path / f".{name}"
        hidden.write_bytes(encode(table))
        hidden.rename(self.path / name)

    def clear(self) -> None:
        """Removes all segments: Spark would list them for ever. Only when every query has read them."""
        for path in self.path.glob("*.parquet"):
            path.unlink()


class PlainStage:
    """A stage as a query of its own that runs whenever it finds rows."""

    def __init__(
        self, stage: Stage, frame: DataFrame, folder: Path, output: Folder | None, trigger: str | None = None
    ):
        self.stage = stage
        self._frame = frame
        self._trigger = trigger
        self._folder = folder
        folder.mkdir(parents=True)
        self._output = output
        self._sink: End | None = None
        if stage.sink is not None:
            self._sink = end_for(stage.sink.spec, Writer(stage.name, folder, Disk()))
        self._each_turn = EachTurn.of(stage) if stage.at_turn is not None else None
        self._splits = bool(stage.operators) and stage.operators[-1].dead_letters
        self._ended: dict[int, tuple[float, int]] = {}
        self._query: StreamingQuery | None = None

    def start(self) -> None:
        # A pool of its own in Spark's FAIR scheduler: the query's thread takes it over from this one.
        self._frame.sparkSession.sparkContext.setLocalProperty("spark.scheduler.pool", self.stage.name)
        writer = self._frame.writeStream.foreachBatch(self._on_batch).queryName(self.stage.name)
        if self._trigger is not None:
            writer = writer.trigger(processingTime=self._trigger)
        self._query = writer.option("checkpointLocation", str(self._folder / "checkpoint")).start()

    def _on_batch(self, frame: DataFrame, batch: int) -> None:
        made = frame if self._each_turn is None else self._each_turn.apply(frame)
        rows = self._deliver(made, batch)
        self._ended[batch] = (time.time(), rows)

    def _deliver(self, frame: DataFrame, batch: int) -> int:
        if self._sink is not None:
            written = self._sink.write(
                Result(Rows.of(frame), True, self._folder / "scratch", Dating(TurnInput())), batch
            )
            for output in written.outputs:
                self._sink.show(output)
            return written.rows
        assert self._output is not None
        table = frame.toArrow()
        if self._splits:
            table, _ = split_table(table)
        self._output.put(table)
        return int(table.num_rows)

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()

    @property
    def error(self) -> str:
        """Why the query has ended, "" while it lives."""
        if self._query is None or self._query.isActive:
            return ""
        return str(self._query.exception() or "it ended by itself")

    @property
    def idle(self) -> bool:
        """Whether it has had nothing to do for a while; it looks for new files all the time."""
        assert self._query is not None
        last_end = max((at for at, _ in self._ended.values()), default=0.0)
        return not self._query.status["isDataAvailable"] and time.time() - last_end > IDLE_SECONDS

    def turns(self) -> list[TurnRecord]:
        """Its batches, as far as Spark still remembers them; the times are made up for by whoever asks."""
        assert self._query is not None
        made = []
        for progress in self._query.recentProgress:
            ended = self._ended.get(progress["batchId"])
            if ended is not None and progress["numInputRows"]:
                made.append(self._turn(progress, *ended))
        return made

    def _turn(self, progress: Any, finished_at: float, rows_out: int) -> TurnRecord:
        return TurnRecord(
            stage=self.stage.name,
            pipeline=self.stage.pipeline,
            batch=progress["batchId"],
            kind="held",
            slots=self.stage.parallelism,
            granted_at=datetime.fromisoformat(progress["timestamp"]).timestamp(),
            finished_at=finished_at,
            rows_in=progress["numInputRows"],
            rows_out=rows_out,
            queue_seconds=0.0,
            schedule_seconds=0.0,
            compute_seconds=0.0,
        )


class PlainQueries:
    """All stages of a graph as queries, joined by directories; `trigger` is how often each looks for rows."""

    def __init__(
        self,
        session: SparkSession,
        graph: StageGraph,
        schemas: Mapping[str, StructType],
        folder: Path,
        trigger: str | None = None,
        parallel: bool = False,
    ):
        """`parallel` deals rows to as many tasks as a stage declares, also where they came as one file."""
        self._trigger, self._parallel = trigger, parallel
        self.folders = {name: Folder(folder / "queues" / name) for name in graph.queues}
        for each in self.folders.values():
            each.path.mkdir(parents=True)
        self._session = session
        self._schemas = dict(schemas)
        self.stages = [self._stage(stage, folder / "stages" / stage.name) for stage in graph.stages]

    def _stage(self, stage: Stage, folder: Path) -> PlainStage:
        frame = build(stage, {queue: self._read(queue, stage.parallelism) for queue in stage.inputs})
        if stage.output is None:
            return PlainStage(stage, frame, folder, None, self._trigger)
        from pyspark.sql.types import StructType

        schema = frame.schema if stage.at_turn is None else EachTurn.of(stage).schema
        self._schemas[stage.output] = StructType(
            [each for each in schema.fields if each.name not in (DEAD_LETTER, RAW)]
        )
        return PlainStage(stage, frame, folder, self.folders[stage.output], self._trigger)

    def _read(self, queue: str, tasks: int) -> DataFrame:
        # In as many tasks as the turns of Penstock; never forgetting a file for its age.
        reader = self._session.readStream.schema(self._schemas[queue]).option("maxFileAge", "365d")
        rows = reader.parquet(str(self.folders[queue].path))
        # A batch that came as one file is one task, however many it may have: there rows are dealt out.
        return rows.coalesce(1).repartition(tasks) if self._parallel and tasks > 1 else rows.coalesce(tasks)

    def start(self) -> None:
        for each in self.stages:
            each.start()

    def stop(self) -> None:
        for each in self.stages:
            each.stop()

    def turns(self) -> list[TurnRecord]:
        return [turn for each in self.stages for turn in each.turns()]

    @property
    def idle(self) -> bool:
        return all(each.idle for each in self.stages)

    def clear(self) -> None:
        """Empties the directories between the queries; call it idle."""
        for folder in self.folders.values():
            folder.clear()

    @property
    def error(self) -> str:
        return "; ".join(f"{each.stage.name}: {each.error}" for each in self.stages if each.error)
