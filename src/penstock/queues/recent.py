"""Rows of tiny files that were written a moment ago: a turn over many of them need not read them again."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import PurePath

import pyarrow as pa

MOST_BYTES = 1 << 20
"""Of one spool. Where more waits, what comes then is read from its files."""
LEAST_BYTES = 4096
"""What a table counts for, however few its rows."""


class RecentRows:
    """By the names of their data files, which are never used twice; safe for threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._tables: dict[str, pa.Table] = {}
        self._lock = threading.Lock()

    def keep(self, file: str, table: pa.Table) -> None:
        """A copy, unless there is no room: the buffers of `table` may be somebody's, or hold much else."""
        if self._bytes + _size(table) > self._most_bytes:
            return
        own = copy_of(table)
        with self._lock:
            self._tables[_name(file)] = own
            self._bytes += _size(own)

    def rows(self, file: str) -> pa.Table | None:
        """All rows of the file, if they are kept."""
        return self._tables.get(_name(file))

    def forget(self, files: Iterable[str]) -> None:
        """The files are gone, or going."""
        with self._lock:
            for file in files:
                gone = self._tables.pop(_name(file), None)
                self._bytes -= 0 if gone is None else _size(gone)


def copy_of(table: pa.Table) -> pa.Table:
    """The same rows in one buffer that holds nothing else."""
    copied = pa.BufferOutputStream()
    with pa.ipc.new_stream(copied, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return pa.ipc.open_stream(copied.getvalue()).read_all()


def _size(table: pa.Table) -> int:
    return max(int(table.nbytes), LEAST_BYTES)


def _name(file: str) -> str:
    return PurePath(file).name
