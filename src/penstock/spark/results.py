"""The result of a turn: small ones come to the driver as Arrow, large ones are written by the executors."""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.queues.segment import Arrivals
from penstock.spark.turn_input import TurnInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL_ROWS = 20_000
"""So many rows come to the driver, whatever their size."""
SMALL_BYTES, MOST_SMALL_ROWS = 16 * 2**20, 100_000
"""So many come where they are known to be no larger in all: tasks take longer to write them."""
SAMPLE_ROWS = 1_000
"""So few rows say little about the size of others."""
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


def is_small(rows: float, row_bytes: float | None, *, on_cluster: bool = False) -> bool:
    """Whether so many rows come to the driver; `row_bytes` is the size of one, None while it is not known.

    On a cluster larger results stay where they are made: the driver has work for all executors.

    >>> is_small(20_000, None), is_small(50_000, None), is_small(50_000, 100.0), is_small(50_000, 1000.0)
    (True, False, True, False)
    """
    if rows <= SMALL_ROWS:
        return True
    known = row_bytes is not None and rows * row_bytes <= SMALL_BYTES
    return known and rows <= MOST_SMALL_ROWS and not on_cluster


@dataclass(frozen=True)
class RowSize:
    """What a row of a result takes in memory; sure if many rows were looked at, all there were."""

    bytes: float
    is_sure: bool

    @classmethod
    def of(cls, table: pa.Table) -> RowSize | None:
        """None without rows."""
        return cls(table.nbytes / table.num_rows, table.num_rows >= SAMPLE_ROWS) if table.num_rows else None

    @classmethod
    def of_files(cls, files: Sequence[Path]) -> RowSize | None:
        """By the first rows of each Parquet file: in the file itself rows that repeat are as good as none."""
        samples = [next(pq.ParquetFile(file).iter_batches(SAMPLE_ROWS), None) for file in files]
        sizes = [each.nbytes / each.num_rows for each in samples if each is not None and each.num_rows]
        return cls(max(sizes), is_sure=False) if sizes else None


class Result:
    """Rows that one action yields: `small` ones come to the driver, others are written by the tasks.

    Either way a full action runs once, which is what commits a stateful turn.
    """

    def __init__(
        self,
        rows: Rows,
        small: bool,
        scratch: Path,
        dating: Dating,
        context: Mapping[str, Any] | None = None,
    ):
        self._rows = rows
        self.context = context or {}
        self.small = small
        self.row_size: RowSize | None = None
        """Known after the action, where there are rows."""
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
            self.row_size = RowSize.of(self._table)
        return self._table

    @contextmanager
    def files(self) -> Iterator[list[Path]]:
        """Parquet files written by Spark's tasks, to be moved away: their folder goes at the end."""
        folder = self.scratch / uuid.uuid4().hex
        try:
            self.frame.write.parquet(str(folder))
            files = sorted(folder.glob("*.parquet"))
            self.row_size = RowSize.of_files(files)
            yield files
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
            parts = self._large(good), self._large(dead)
            yield parts
            self.row_size = parts[0].row_size
        finally:
            kept.unpersist()

    def _holding(self, table: pa.Table) -> Result:
        part = Result(self._rows, True, self.scratch, self.dating, self.context)
        part._table = table
        return part

    def _large(self, frame: DataFrame) -> Result:
        return Result(Rows.of(frame), False, self.scratch, self.dating, self.context)


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
