"""Replay of a trace into a spool, at a given rate."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import PenstockError
from penstock.pipeline.sources import Replay
from penstock.queues.disk import Disk
from penstock.queues.errors import SpoolClosed, SpoolFull
from penstock.queues.segment import Arrivals
from penstock.queues.spool import Spool

log = logging.getLogger("penstock")

PRODUCER = "replay"
# From which batch on it holds, the trace's row that batch begins with, and the rows of each.
Pace = tuple[int, int, float]
FULL_WAIT_SECONDS = 0.5


def load_trace(spec: Replay) -> pa.Table:
    """The trace as a table, with columns for the stamp and the number if it is to have them."""
    table = spec.trace if isinstance(spec.trace, pa.Table) else _read(Path(spec.trace))
    if table.num_rows == 0:
        raise PenstockError("a trace must have at least one row, got none: there is nothing to replay")
    for name, kind in ((spec.stamp, pa.timestamp("us", "UTC")), (spec.number, pa.int64())):
        if name is not None:
            table = _with_column(table, name, pa.nulls(table.num_rows, kind))
    return table.combine_chunks()


def _with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """The table with these values in the column of that name, which comes last where there was none."""
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, values)
    return table.append_column(name, values)


def _read(path: Path) -> pa.Table:
    if not path.exists():
        raise PenstockError(f"a trace must be a file that exists, got {path}: there is nothing to replay")
    if path.suffix == ".parquet":
        return pq.read_table(path)
    return pa.table({"value": path.read_text().splitlines()})


class Trace:
    """The rows of a replay by their numbers, stamped if they are to be."""

    def __init__(self, spec: Replay):
        self._spec = spec
        self._table = load_trace(spec)

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    def rows(self, first: int, last: int) -> pa.Table:
        """From the first to the one before the last; beyond the trace's end from its begin on, or none."""
        size = self._table.num_rows
        if not self._spec.loop:
            rows = self._table.slice(min(first, size), max(min(last, size) - first, 0))
            return self._numbered(rows, first)
        number, pieces = first, []
        while first < last:
            start = first % size
            pieces.append(self._table.slice(start, min(last - first, size - start)))
            first += pieces[-1].num_rows
        return self._numbered(pa.concat_tables(pieces), number)

    def _numbered(self, rows: pa.Table, first: int) -> pa.Table:
        if self._spec.number is None:
            return rows
        numbers = pa.array(np.arange(first, first + rows.num_rows, dtype="int64"))
        return _with_column(rows, self._spec.number, numbers)

    def stamped(self, rows: pa.Table, begin: float, seconds: float = 0.0) -> pa.Table:
        """The rows with times that are spread over the seconds from `begin` on."""
        if self._spec.stamp is None:
            return rows
        count = rows.num_rows
        micros = begin * 1e6 + np.arange(count) * (seconds * 1e6 / count)
        stamps: Any = pa.array(micros.astype("int64"), pa.int64()).cast(pa.timestamp("us", "UTC"))
        return _with_column(rows, self._spec.stamp, stamps)


class Feeder:
    """Appends the rows that are due, every tick. After a restart it goes on with the row after the last one.

    Rows arrive when they were due: a spool that makes the feeder wait does not make them younger.
    """

    def __init__(self, spec: Replay, spool: Spool, clock: Callable[[], float]):
        self._spec = spec
        self._spool = spool
        self._clock = clock
        self._trace = Trace(spec)
        self._tick = max(spec.tick_seconds, 1 / spec.rows_per_second)
        self._stopping = threading.Event()
        self._unpaused = threading.Event()
        self._unpaused.set()
        self._first_batch = 0
        self._pace: Pace = (0, 0, 1.0)
        self.done = False
        self._thread = threading.Thread(target=self._run, name=f"penstock-replay-{spool.name}", daemon=True)

    @property
    def schema(self) -> pa.Schema:
        return self._trace.schema

    def start(self) -> None:
        last = self._spool.last_batch(PRODUCER)
        self._first_batch = 0 if last is None else last + 1
        self._pace = self._settle_pace(self._first_batch)
        self._thread.start()

    def pause(self, paused: bool) -> None:
        if paused:
            self._unpaused.clear()
        else:
            self._unpaused.set()

    def stop(self) -> None:
        self._stopping.set()
        self._unpaused.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        batch = self._first_batch
        due = self._clock()
        while not self._stopping.is_set():
            rows = self._rows(batch)
            if rows.num_rows == 0:
                break
            due += self._tick
            self._wait_until(due)
            if not self._unpaused.is_set():
                self._unpaused.wait()
                due = self._clock()
            if self._stopping.is_set() or not self._append(rows, due):
                return
            batch += 1
        self.done = True

    def _settle_pace(self, batch: int) -> Pace:
        """The pace from this batch on: kept in the queue's folder, so that another rate skips no row."""
        path = self._spool.path / "replay.json"
        each = self._spec.rows_per_second * self._tick
        pace: Pace = (0, 0, each)
        if path.exists():
            since, row, before = json.loads(path.read_text())
            pace = (since, row, before)
            if before == each:
                return pace
            pace = (batch, row + round((batch - since) * before), each)
        Disk().replace(path, json.dumps(pace).encode())
        return pace

    def _append(self, rows: pa.Table, due: float) -> bool:
        """Whether the rows are in the spool; a full one, or a disk that fails, makes the feeder wait."""
        stamped = self._trace.stamped(rows, due - self._tick, self._tick)
        arrivals = Arrivals.at(due, rows.num_rows)
        told, before = False, self._spool.last_batch(PRODUCER)
        while not self._stopping.is_set():
            try:
                self._spool.append(stamped, producer=PRODUCER, arrivals=arrivals, timeout=FULL_WAIT_SECONDS)
                return True
            except SpoolClosed:
                return False
            except (SpoolFull, OSError) as failed:
                if self._spool.last_batch(PRODUCER) != before:
                    return True
                if not told:
                    log.warning("rows of %r wait and are tried again: %s", self._spool.name, failed)
                told = True
                self._stopping.wait(FULL_WAIT_SECONDS)
        return False

    def _wait_until(self, due: float) -> None:
        while (left := due - self._clock()) > 0 and not self._stopping.is_set():
            self._stopping.wait(min(left, 0.5))

    def _rows(self, batch: int) -> pa.Table:
        """The rows of a batch: fixed by its number, so that a restart repeats none and leaves none out."""
        since, row, each = self._pace
        first, last = (row + round(count * each) for count in (batch - since, batch - since + 1))
        return self._trace.rows(first, last)


def wait_for(condition: Callable[[], bool], limit_seconds: float, poll_seconds: float = 0.02) -> bool:
    """Whether the condition came true within the limit."""
    limit = time.monotonic() + limit_seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(poll_seconds)
    return True
