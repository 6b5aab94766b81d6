"""The source of both sides: every 100 ms a tenth of the rate, from a trace that loops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pyarrow as pa

TICK_SECONDS = 0.1

Put = Callable[[pa.Table, float], None]
"""Takes rows in, and when they arrived."""


class Drip:
    """Feeds rows with the columns `arrived` and `msgid` at a rate that may be changed at any time.

    Rows arrive when they are due, also where the one who takes them in is late. Nothing is due for the time
    at rate 0, in which the process may have been stopped by a signal. What was fed when is in `ticks`, unless
    `keep` is false: then nothing here grows with time.
    """

    def __init__(self, trace: pa.Table, put: Put, *, keep: bool = True):
        self._trace = trace.combine_chunks()
        self._put = put
        self._keep = keep
        self._rate = 0.0
        self._anew = False
        self.rows = 0
        self.ticks: list[tuple[float, int]] = []
        self._owed = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drip", daemon=True)

    @property
    def rate(self) -> float:
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        self._anew = self._rate == 0.0
        self._rate = rate

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        due = time.time()
        while not self._stopping.is_set():
            due += TICK_SECONDS
            self._stopping.wait(max(due - time.time(), 0.0))
            if self._anew or self._rate == 0.0:
                self._anew, due = False, time.time()
            self._owed += self._rate * TICK_SECONDS
            rows = int(self._owed)
            if rows:
                self._owed -= rows
                self._put(self._next(rows, due), due)
                if self._keep:
                    self.ticks.append((due, rows))

    def _next(self, rows: int, due: float) -> pa.Table:
        size = self._trace.num_rows
        pieces, first = [], self.rows
        while first < self.rows + rows:
            start = first % size
            pieces.append(self._trace.slice(start, min(self.rows + rows - first, size - start)))
            first += pieces[-1].num_rows
        numbers = pa.array(range(self.rows, self.rows + rows), pa.int64())
        stamps = pa.array([round(due * 1e6)] * rows, pa.int64()).cast(pa.timestamp("us", "UTC"))
        self.rows += rows
        return pa.concat_tables(pieces).append_column("arrived", stamps).append_column("msgid", numbers)
