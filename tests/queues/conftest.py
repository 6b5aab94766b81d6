"""Tables of numbered rows, and spools that close themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.queues import Slice, Spool


def numbered(start: int, rows: int) -> pa.Table:
    """Rows `start` to `start + rows`, each with its number and a time of as many seconds."""
    ids = list(range(start, start + rows))
    times = pa.array([number * 1_000_000 for number in ids], pa.timestamp("us", tz="UTC"))
    return pa.table({"id": pa.array(ids, pa.int64()), "ts": times})


def ids_of(slices: Iterable[Slice]) -> list[int]:
    """The row numbers that the files of `slices` hold, in order."""
    paths = [path for piece in slices for path in piece.paths]
    return [number for path in paths for number in pq.ParquetFile(path).read()["id"].to_pylist()]


@pytest.fixture
def rows() -> Callable[[int, int], pa.Table]:
    return numbered


@pytest.fixture
def ids() -> Callable[[Iterable[Slice]], list[int]]:
    return ids_of


@pytest.fixture
def open_spool(tmp_path: Path) -> Iterator[Callable[..., Spool]]:
    """Opens the spool in tmp_path/q; opening it again closes the one before."""
    opened: list[Spool] = []

    def open_again(**settings: Any) -> Spool:
        for spool in opened:
            spool.close()
        opened.append(Spool(tmp_path / "q", **settings))
        return opened[-1]

    yield open_again
    for spool in opened:
        spool.close()


@pytest.fixture
def files_in(tmp_path: Path) -> Callable[[str], list[str]]:
    return lambda folder: sorted(path.name for path in (tmp_path / "q" / folder).iterdir())
