"""One Structured Streaming query that is held at the end of each batch."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.spark.checkpoint import PARTITIONS, STORE_SETTINGS, StateStore, compiling, settings_for_start
from penstock.spark.gate import Gate
from penstock.spark.jvm import analysed_plan, java_session, jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CODE = "spark.sql.codegen.factoryMode"
# The watermark stands as a literal in the expressions of a stateful batch, so that their code is compiled
# anew for each: about 60 ms. Interpreted, a row costs about a microsecond more. Code of whole stages has no
# such literal and is compiled once; but Spark makes none where all other code is interpreted.
INTERPRETED, GENERATED = "NO_CODEGEN", "FALLBACK"
ROWS_WORTH_COMPILING = 30_000
# How long a query that stops may go on with rows that keep coming.
REST_SECONDS = 5.0


def is_worth_compiling(rows: int) -> bool:
    """Whether so many rows take longer than code that is compiled for them alone."""
    return rows > ROWS_WORTH_COMPILING


@dataclass(frozen=True)
class QuerySettings:
    """What a held query is started with. `partitions` is the number of tasks, and of pieces of state."""

    name: str
    checkpoint: Path
    partitions: int
    output_mode: str = "append"
    copies: int = 1
    """How many rows its plan makes of one, for windows that overlap."""
    store: StateStore | None = None
    """For state that is new, None as the session says: Spark keeps to the one a checkpoint began with."""


@dataclass(frozen=True)
class AfterBatch:
    """What a held query knows of the batch it has just run."""

    rows_read: int
    late_rows: int
    wants_flush: bool
    rows_kept: int
    """Rows of state that were written."""


class HeldQuery:
    """A query whose callback runs the turn; between turns it hangs at the gate and costs nothing."""

    def __init__(self, frame: DataFrame, callback: Callable[[DataFrame, int], bool], settings: QuerySettings):
        """`callback` runs a batch and says whether to hold after it."""
        self._frame = frame
        self._callback = callback
        self._settings = settings
        self.gate = Gate()
        self._query: StreamingQuery | None = None
        self._run_id: str | None = None
        self._last_batch = -1
        self._code = INTERPRETED
        self._batch_session: SparkSession | None = None
        self._watermark_millis = 0
        # The first batch may come before `start` has returned the query it belongs to.
        self._known = threading.Event()

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def started(self) -> bool:
        return self._query is not None

    @property
    def batch_session(self) -> SparkSession:
        """The query's own, a clone of the one that it was started from."""
        return self._batch_session or self._frame.sparkSession

    def go(self) -> None:
        """Lets the next batch come, in the query's own thread."""
        self.gate.release()

    def planned_batches(self) -> Any:
        """What runs the next batches over the plan of the last; None if each must be planned. While held."""
        java = jvm(self._frame.sparkSession).penstock.PlannedBatches
        return java.after(self._execution, analysed_plan(self._frame))

    def start(self, *, ran_before: bool) -> None:
        """Starts the query. Its first batch comes without a grant."""
        self._check_checkpoint(ran_before)
        session = self._frame.sparkSession
        writer = (
            self._frame.writeStream.foreachBatch(self._on_batch)
            .queryName(self._settings.name)
            .outputMode(self._settings.output_mode)
            .option("checkpointLocation", str(self._settings.checkpoint))
        )
        wanted = {PARTITIONS: str(self._settings.partitions), CODE: self._code}
        if self._settings.store is not None:
            wanted |= STORE_SETTINGS[self._settings.store]
        with compiling, settings_for_start(session, wanted):
            self._query = writer.start()
        self._run_id = str(self._query.runId)
        self._known.set()

    def _check_checkpoint(self, ran_before: bool) -> None:
        """A checkpoint without a batch is left by a crash in the first: Spark refuses it, so it goes."""
        checkpoint = self._settings.checkpoint
        offsets = checkpoint / "offsets"
        if offsets.is_dir() and any(path.name.isdigit() for path in offsets.iterdir()):
            return
        if ran_before:
            raise PenstockError(
                f"query {self._settings.name!r} must find its checkpoint in {checkpoint}, which has none: "
                "its state is lost; restore the directory, or remove the pipeline's state to begin anew"
            )
        shutil.rmtree(checkpoint, ignore_errors=True)

    def _on_batch(self, frame: DataFrame, batch: int) -> None:
        self._known.wait()
        self._last_batch = batch
        self._batch_session = self._batch_session or frame.sparkSession
        if self._callback(frame, batch):
            self.gate.hold()

    def suit(self, rows: int) -> None:
        """Lets the next batches, of about so many rows, run with the code that is cheaper. While held."""
        self.run_with(GENERATED if is_worth_compiling(self.rows_within(rows)) else INTERPRETED)

    def rows_within(self, rows: int) -> int:
        """How many rows its plan makes of so many."""
        return rows * self._settings.copies

    def run_with(self, code: str) -> None:
        """How expressions are run from the next batch on."""
        if code != self._code and self._batch_session is not None:
            self._batch_session.conf.set(CODE, code)
        self._code = code

    @property
    def holds(self) -> bool:
        """Whether it rests at the gate after a batch."""
        return self.gate.holds

    @property
    def error(self) -> BaseException | None:
        """Why the query ended by itself; None while it lives."""
        return self._query.exception() if self._query is not None and not self._query.isActive else None

    def has_died(self, alive: frozenset[str]) -> bool:
        """Whether it was started and is no longer among the runs that are alive."""
        if self._run_id is None or self._run_id in alive or self._query is None:
            return False
        # It may have been started after the others were counted.
        return not self._query.isActive

    @property
    def waits_for_data(self) -> bool:
        """Whether it was released and found nothing to do."""
        if self._query is None:
            return False
        return bool(self._query.status["message"] == "Waiting for data to arrive")

    def after_batch(self) -> AfterBatch:
        """Only while held."""
        return self.told(self._execution.lastExecution())

    def told(self, execution: Any) -> AfterBatch:
        """What a batch that has run tells, as one of this query."""
        rows, late, flush, kept = map(int, self._probe.afterBatch(execution, self._tracker).split())
        return AfterBatch(rows, late, bool(flush), kept)

    def late_threshold(self, batch: int) -> float:
        """The watermark by which `batch` judges its rows late: that of the batch before it."""
        offsets = self._settings.checkpoint / "offsets" / str(batch - 1)
        metadata = json.loads(offsets.read_text().splitlines()[1]) if offsets.exists() else {}
        return float(metadata.get("batchWatermarkMs", 0)) / 1000

    def raise_watermark(self, greatest: float, delay_seconds: float) -> bool:
        """Windows that these rows complete leave with the next batch, not with the one after. While held.

        Whether it was lower before.
        """
        if not self.started:
            return False
        # In whole numbers, as Spark computes it: a millisecond less would cost a turn.
        millis = round(greatest * 1e6) // 1000 - round(delay_seconds * 1000)
        if millis <= self._watermark_millis:
            return False
        self._watermark_millis = millis
        return bool(self._probe.raiseWatermark(self._tracker, millis))

    def rate_start(self) -> float:
        """When the query's rate source began to count; negative if it has none."""
        return float(self._probe.rateStart(self._execution)) / 1000

    def rate_seconds(self) -> int:
        """How many seconds of its rate source it has read, the batch that runs counted."""
        return int(self._probe.rateSeconds(self._execution))

    def stop(self, wants_more: Callable[[], bool] = lambda: False, timeout_seconds: float = 30.0) -> None:
        """Lets the last batch be committed, and one more if it wants that, then stops the query.

        If it can it waits until the query rests between two batches: one that is broken off runs again.
        """
        query, self._run_id = self._query, None
        self.gate.open()
        if query is None or not query.isActive:
            return
        begun = time.monotonic()
        commits = self._settings.checkpoint / "commits"
        while query.isActive and (wants_more() or not self._committed(commits) or not self.waits_for_data):
            waited = time.monotonic() - begun
            if waited > REST_SECONDS and not wants_more() and self._committed(commits):
                break
            if waited > timeout_seconds:
                query.stop()
                raise PenstockError(
                    f"query {self._settings.name!r} must commit batch {self._last_batch} within "
                    f"{timeout_seconds:g} s of its release, but did not: the next start runs it again"
                )
            time.sleep(0.01)
        query.stop()

    def _committed(self, commits: Path) -> bool:
        return self._last_batch < 0 or (commits / str(self._last_batch)).exists()

    @cached_property
    def _execution(self) -> Any:
        """The JVM's side of the query; looked up once, as each step there costs a round trip."""
        if self._query is None:
            raise PenstockError(f"query {self._settings.name!r} is not started")
        return self._query._jsq.streamingQuery()

    @cached_property
    def _tracker(self) -> Any:
        """Of its watermark; made when its first batch is."""
        return self._execution.watermarkTracker()

    @cached_property
    def _probe(self) -> Any:
        return jvm(self._frame.sparkSession).penstock.StreamProbe


def queries_alive(session: SparkSession) -> frozenset[str]:
    """The runs of all streaming queries that live, in one call."""
    return frozenset(str(jvm(session).penstock.StreamProbe.alive(java_session(session))).split())
