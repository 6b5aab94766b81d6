"""Rows of tiny files that were written a moment ago: a turn over many of them need not read them again."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import PurePath

import pyarrow as pa

MOST_BYTES = 1 << 20
"""Of one spool. Where more waits, what comes then is read from its files."""
WASTEFUL = 2
"""Times the bytes of the rows, what their buffers may take: rows cut from a large table keep all of it."""


class RecentRows:
    """By the names of their data files, which are never used twice; safe for threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._tables: dict[str, pa.Table] = {}
        self._lock = threading.Lock()

    def keep(self, file: str, table: pa.Table) -> None:
        """Unless there is no room. What is kept is small, however large the table that it was cut from."""
        if self._bytes + table.nbytes > self._most_bytes:
            return
        own = compact(table)
        with self._lock:
            self._tables[_name(file)] = own
            self._bytes += own.nbytes

    def rows(self, file: str) -> pa.Table | None:
        """All rows of the file, if they are kept."""
        return self._tables.get(_name(file))

    def forget(self, files: Iterable[str]) -> None:
        """The files are gone, or going."""
        with self._lock:
            for file in files:
                gone = self._tables.pop(_name(file), None)
                self._bytes -= 0 if gone is None else gone.nbytes


def compact(table: pa.Table) -> pa.Table:
    """The same rows in buffers that hold little else."""
    whole = table.combine_chunks()
    if whole.get_total_buffer_size() <= WASTEFUL * whole.nbytes:
        return whole
    copied = pa.BufferOutputStream()
    with pa.ipc.new_stream(copied, whole.schema) as writer:
        writer.write_table(whole)
    return pa.ipc.open_stream(copied.getvalue()).read_all()


def _name(file: str) -> str:
    return PurePath(file).name
