"""What lies in a folder of Parquet files after a pipeline was killed and went on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from penstock.bench.result import BenchResult, Mark, at_most
from penstock.bench.stats import single
from penstock.spark.feeders import wait_for


def count_ids(folder: Path) -> Counter[int]:
    """How often each id is there."""
    found: Counter[int] = Counter()
    for path in sorted(folder.glob("[!.]*.parquet")):
        found.update(pq.ParquetFile(path).read(columns=["id"])["id"].to_pylist())
    return found


def wait_for_ids(folder: Path, count: int, limit_seconds: float) -> bool:
    """Whether so many different ids have come within the limit."""
    return wait_for(lambda: len(count_ids(folder)) >= count, limit_seconds, 1.0)


def put_losses(result: BenchResult, name: str, folder: Path, sent: int, doubled: Mark | None) -> None:
    """`NAME_lost`, which must be 0, and `NAME_doubled`."""
    found = count_ids(folder)
    result.put(f"{name}_lost", single(sent - len(found)), at_most(0))
    result.put(f"{name}_doubled", single(sum(found.values()) - len(found)), doubled)
