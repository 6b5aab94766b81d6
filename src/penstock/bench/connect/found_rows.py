"""What lies in a spool after pipelines that were killed and went on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.result import BenchResult, at_most
from penstock.bench.stats import single
from penstock.queues.spool import Spool

FOUND = "found"
"""The spool's name in the folder of its pipeline."""


def ids_in(spool: Spool) -> pa.ChunkedArray:
    """The column `id` of all that was published."""
    files = [spool.path / name for segment in spool.segments for name in segment.files]
    columns = [pq.ParquetFile(file).read(columns=["id"])["id"] for file in files]
    return pa.chunked_array([chunk for each in columns for chunk in each.chunks], pa.int64())


def put_losses(result: BenchResult, name: str, folder: Path, sent: int, *, exactly_once: bool = True) -> None:
    """`NAME_lost`, which must be 0, and `NAME_doubled`, which must be where each row is to come once."""
    with Spool(folder / FOUND) as spool:
        found = ids_in(spool).to_numpy()
    different = np.unique(found)
    came = int(np.count_nonzero((different >= 0) & (different < sent)))
    result.put(f"{name}_lost", single(sent - came), at_most(0))
    doubled = single(len(found) - came)  # a row that nobody sent is one too many as well
    result.put(f"{name}_doubled", doubled, at_most(0) if exactly_once else None)
