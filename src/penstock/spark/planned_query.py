"""The batches of a query that was held, over the plan of its first ones: Spark plans no more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.spark.jvm import frame_of
from penstock.spark.query import INTERPRETED, AfterBatch, HeldQuery, is_worth_compiling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_WORTH_WHOLE_STAGES = 1_000
"""Spark writes and looks up the code of whole stages for each batch, some milliseconds; interpreted, a row
costs several microseconds."""
MOST_FLUSHES = 5
"""Batches without rows at a stop, one for each operator with state at the most."""


class PlannedBatch:
    """The rows of one batch. One action over them is the batch: either writes them or reads the frame."""

    def __init__(self, batches: Any, query: HeldQuery):
        self._batches, self._query = batches, query

    def write(self, file: str, here: bool) -> None:
        """As Arrow streams; `here` without a job, where one task without an exchange is all of it."""
        self._batches.write(file, here)

    def frame(self) -> DataFrame:
        return frame_of(self._batches.frame(), self._query.batch_session)

    def commit(self) -> None:
        """Once its result is kept: a query would go on with the next batch."""
        self._batches.commit()


class PlannedQuery:
    """Goes on where a held query has stopped: no thread waits, and a batch runs in the one that asks for it.

    Batches are numbered, logged and committed as Spark's are, so that a query can be started from its
    checkpoint again.
    """

    def __init__(self, query: HeldQuery, batches: Any, callback: Callable[[PlannedBatch, int], None]):
        """`query` has stopped, all that was granted served. `callback` runs a batch and commits it."""
        self._query, self._batches, self._callback = query, batches, callback
        self._turns = threading.Lock()
        # From the begin of a batch until it is committed: nothing may come after one that was broken off.
        self._broken = self._stopped = False
        self.late_threshold, self.raise_watermark = query.late_threshold, query.raise_watermark
        self._can_be_whole = bool(batches.canBeWhole())
        self._kept_share: float | None = None
        """Rows of state that were written, of the rows read; None while no rows were."""
        self._is_whole = False

    waits_for_data = False
    error = None

    def suit(self, rows: int) -> None:
        """As a held query's. If whole stages read all rows and state keeps few, the rest is interpreted."""
        few_kept = self._kept_share is not None and not is_worth_compiling(int(rows * self._kept_share))
        many_read = self._query.rows_within(rows) >= ROWS_WORTH_WHOLE_STAGES
        self._is_whole = self._can_be_whole and few_kept and many_read
        if self._is_whole:
            self._query.run_with(INTERPRETED)
        else:
            self._query.suit(rows)

    def go(self) -> None:
        """Runs the next batch, of all that is granted."""
        with self._turns:
            if self._stopped or self._broken:
                raise PenstockError(
                    f"query {self._query.name!r} must rest to run a batch, but "
                    f"{'has stopped' if self._stopped else 'its last one was broken off'}: nothing was run"
                )
            self._run()

    def _run(self) -> None:
        self._broken = True
        batch = int(self._batches.begin())
        if self._is_whole:
            self._can_be_whole = bool(self._batches.makeWhole())
        self._callback(PlannedBatch(self._batches, self._query), batch)
        self._broken = False

    def after_batch(self) -> AfterBatch:
        """What the last batch read, and whether windows wait for one without rows."""
        told = self._query.told(self._batches.execution())
        if told.rows_read:
            self._kept_share = told.rows_kept / told.rows_read
        return told

    @property
    def holds(self) -> bool:
        """Whether it rests between two batches."""
        return not self._turns.locked() and not self._stopped and not self._broken

    def has_died(self, alive: frozenset[str]) -> bool:
        """Never: it is no query of Spark's any more."""
        return False

    def divided(self, slots: int) -> PlannedQuery | None:
        """What goes on over the state that was divided for so many slots; None where that takes a new query.

        Once this one has stopped.
        """
        batches = self._batches.divided(slots)
        if batches is None:
            return None
        made = PlannedQuery(self._query, batches, self._callback)
        made._kept_share = self._kept_share
        return made

    def stop(self, wants_more: Callable[[], bool] = lambda: False) -> None:
        """Runs batches without rows while they are wanted, and gives up the state in memory."""
        with self._turns:
            if self._stopped:
                return
            try:
                for _ in range(MOST_FLUSHES):
                    if wants_more() and not self._broken:
                        self._run()
            finally:
                self._stopped = True
                self._batches.stop()


def planned_once(query: HeldQuery, callback: Callable[[PlannedBatch, int], None]) -> PlannedQuery | None:
    """Ends a query that is held, and goes on with its batches; None where Spark must plan each by itself."""
    batches = query.planned_batches()
    if batches is None:
        return None
    query.stop()
    if query.error is not None:
        raise query.error
    batches.goOn()
    return PlannedQuery(query, batches, callback)
