"""Waiting that never hopes, and what lies in a spool."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.queues.spool import Spool


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Returns as soon as the condition holds; fails the test when it does not within the limit."""
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            pytest.fail(f"not so within {seconds:g} s")
        time.sleep(0.01)


def rows_in(spool: Spool) -> list[dict[str, Any]]:
    """All rows of a spool, in the order of publication."""
    files = [spool.path / file for segment in spool.segments for file in segment.files]
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
