"""The result of a turn: small ones come to the driver as Arrow, large ones are written by the executors."""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.queues.segment import Arrivals
from penstock.spark.turn_input import TurnInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL_ROWS = 20_000
DEAD_LETTER = "dead_letter"
RAW = "raw"


@dataclass(frozen=True)
class Dating:
    """From when results count: the rows a turn took and, for windows, the event-time column and its delay."""

    took: TurnInput
    column: str = ""
    delay_seconds: float = 0.0
    completed_at: Callable[[float], float | None] = lambda progress: None

    def arrivals(self, table: pa.Table | None) -> Arrivals:
        """A window's result counts from the arrival of the event that completed it, others as their input."""
        if self.column and table is not None and (ends := window_ends(table)):
            completed = self._completed(ends)
            if completed.bins:
                return completed
        return self.took.arrivals

    def _completed(self, ends: list[float]) -> Arrivals:
        """By what is known of the sources, else by the rows of the turn."""
        rows = Counter(ends)
        times = {end: self.completed_at(end + self.delay_seconds) for end in rows}
        unknown = [end for end in ends if times[end] is None]
        known = [Arrivals.at(time, rows[end]) for end, time in times.items() if time is not None]
        return self.took.completed(unknown, self.column, self.delay_seconds).merge(known)


@dataclass(frozen=True)
class Rows:
    """The rows of a turn before anything has run: how to get them as a DataFrame, and as an Arrow table."""

    frame: Callable[[], DataFrame]
    table: Callable[[], pa.Table]

    @classmethod
    def of(cls, frame: DataFrame) -> Rows:
        return cls(lambda: frame, frame.toArrow)


class Result:
    """Rows that one action yields, in the form that their number asks for.

    `expected_rows` decides: up to SMALL_ROWS they come to the driver. Either way a full action runs
    once, which is what commits a stateful turn.
    """

    def __init__(
        self,
        rows: Rows,
        expected_rows: float,
        scratch: Path,
        dating: Dating,
        context: Mapping[str, Any] | None = None,
    ):
        self._rows = rows
        self.context = context or {}
        self.small = expected_rows <= SMALL_ROWS
        self.scratch = scratch
        self.dating = dating
        self._table: pa.Table | None = None

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as Spark has them; runs nothing."""
        return self._rows.frame()

    def table(self) -> pa.Table:
        """The rows as Arrow; the action runs at the first call."""
        if self._table is None:
            self._table = self._rows.table()
        return self._table

    @contextmanager
    def files(self) -> Iterator[list[Path]]:
        """Parquet files written by Spark's tasks, to be moved away: their folder goes at the end."""
        folder = self.scratch / uuid.uuid4().hex
        try:
            self.frame.write.parquet(str(folder))
            yield sorted(folder.glob("*.parquet"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def held_table(self) -> pa.Table | None:
        """The rows, if they came to the driver; runs nothing."""
        return self._table

    @property
    def arrivals(self) -> Arrivals:
        """From when its rows count; ask after the action."""
        return self.dating.arrivals(self._table)

    @contextmanager
    def split(self) -> Iterator[tuple[Result, Result]]:
        """(good rows, dead letters) of a frame with a column `dead_letter`; one evaluation serves both."""
        from pyspark.sql import functions as F

        if self.small:
            yield tuple(self._holding(table) for table in split_table(self.table()))  # type: ignore[misc]
            return
        kept = self.frame.persist()
        try:
            good = kept.filter(F.col(DEAD_LETTER).isNull()).drop(DEAD_LETTER, RAW)
            dead = kept.filter(F.col(DEAD_LETTER).isNotNull()).select(DEAD_LETTER, RAW)
            yield self._large(good), self._large(dead)
        finally:
            kept.unpersist()

    def _holding(self, table: pa.Table) -> Result:
        part = Result(self._rows, 0, self.scratch, self.dating, self.context)
        part._table = table
        return part

    def _large(self, frame: DataFrame) -> Result:
        return Result(Rows.of(frame), SMALL_ROWS + 1, self.scratch, self.dating, self.context)


def split_table(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(good rows without the two columns, dead letters with only those)."""
    is_dead = pc.is_valid(table[DEAD_LETTER])
    good = table.filter(pc.invert(is_dead)).drop_columns([DEAD_LETTER, RAW])
    return good, table.filter(is_dead).select([DEAD_LETTER, RAW])


def window_ends(table: pa.Table) -> list[float]:
    """The ends of the windows of a result, in epoch seconds; empty when it has no `window` struct."""
    if "window" not in table.column_names or not pa.types.is_struct(table.schema.field("window").type):
        return []
    column: Any = table["window"].combine_chunks()
    if column.type.get_field_index("end") < 0:
        return []
    micros = pc.cast(column.field("end"), pa.timestamp("us", column.type.field("end").type.tz))
    return [value / 1e6 for value in pc.cast(micros, pa.int64()).to_pylist() if value is not None]
