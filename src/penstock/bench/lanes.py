"""Streaming queries that run as many turns as they are told to, and rest in between without any work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATIENCE_SECONDS = 120.0
WINDOW = "10 seconds"
ADVANCE_MILLIS = 100


class Lane:
    """The turns of one query, counted at the end of its action.

    A turn lasts from the end of one action to the end of the next: the commit of the batch, the offsets and
    the plan of the next one, its action. The query rests at the end of an action, inside its callback.
    """

    def __init__(self, rows_per_turn: int):
        self.rows_per_turn = rows_per_turn
        self._changed = threading.Condition()
        self._allowed = 0
        self._ends: list[float] = []
        self._first = True

    def on_batch(self, frame: DataFrame, batch: int) -> None:
        """What the query calls: one full action, whose rows go nowhere."""
        frame.write.format("noop").mode("overwrite").save()
        self.ended()

    def ended(self) -> None:
        """An action has ended: rests until the next turn is allowed."""
        now = time.perf_counter()
        with self._changed:
            if self._first:
                self._first = False
            else:
                self._ends.append(now)
                self._allowed -= 1
            self._changed.notify_all()
            while self._allowed <= 0:
                self._changed.wait()

    def run(self, turns: int) -> list[float]:
        """The seconds that each of so many turns took."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._first, PATIENCE_SECONDS):
                raise PenstockError(f"the first turn must end within {PATIENCE_SECONDS:g} s, but did not")
            self._ends = []
            begun = time.perf_counter()
            self._allowed = turns
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: len(self._ends) >= turns, PATIENCE_SECONDS):
                raise PenstockError(
                    f"{turns} turns must end within {PATIENCE_SECONDS:g} s, but {len(self._ends)} did"
                )
            ends = [begun, *self._ends]
        return [after - before for before, after in pairwise(ends)]


def generated(session: SparkSession, rows_per_turn: int) -> DataFrame:
    """Spark's rate-micro-batch source: the same rows in every batch, and always a batch to run."""
    reader = session.readStream.format("rate-micro-batch").option("rowsPerBatch", rows_per_turn)
    return reader.option("numPartitions", 1).option("advanceMillisPerBatch", ADVANCE_MILLIS).load()


def stateless(rows: DataFrame) -> DataFrame:
    """A filter and a projection."""
    return rows.filter("value % 2 = 0").selectExpr("timestamp", "value * 2 AS twice")


def stateful(rows: DataFrame) -> DataFrame:
    """A count over event-time windows."""
    from pyspark.sql import functions as F

    timed = rows.withWatermark("timestamp", "0 seconds")
    return timed.groupBy(F.window("timestamp", WINDOW)).agg(F.count("*").alias("n"))


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {"stateless": stateless, "stateful": stateful}
