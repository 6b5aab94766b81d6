"""Where both sides publish: rows, and how old they are when the broker has them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Publish = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class Delivery:
    """Rows that were published together: when, how many, and their latencies with the rows of each."""

    at: float
    latencies: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class Latency:
    """Latency of the rows published in an interval; all 0.0 where there were none."""

    rows: int
    mean: float = 0.0
    p99: float = 0.0
    early_mean: float = 0.0
    """In the first third of the interval; then, in the last."""
    late_mean: float = 0.0


class SinkMeter:
    """A callback for a sink: publishes a table's payloads, then notes how old its rows are.

    Unless `keep` is false: then rows are only counted, and nothing here grows with time.
    """

    def __init__(self, publish: Publish, clock: Callable[[], float] = time.time, *, keep: bool = True):
        self._publish = publish
        self._clock = clock
        self._keep = keep
        self._lock = threading.Lock()
        self._deliveries: list[Delivery] = []
        self.rows = 0

    def take(self, table: pa.Table, batch: int) -> None:
        if table.num_rows == 0:
            return
        self._publish(table["payload"].to_pylist())
        if not self._keep:
            self._count(table.num_rows)
            return
        now = self._clock()
        counted = pc.value_counts(pc.cast(pc.cast(table["arrived"], pa.timestamp("us", "UTC")), pa.int64()))
        arrived, rows = (counted.field(at).to_numpy(zero_copy_only=False) for at in (0, 1))
        self._count(table.num_rows, Delivery(now, now - arrived / 1e6, rows))

    def _count(self, rows: int, *deliveries: Delivery) -> None:
        with self._lock:
            self._deliveries += deliveries
            self.rows += rows

    def between(self, begin: float, end: float) -> Latency:
        """Of the rows published from `begin` to `end`."""
        with self._lock:
            found = [each for each in self._deliveries if begin <= each.at < end]
        if not found:
            return Latency(0)
        third = (end - begin) / 3
        latencies = np.concatenate([each.latencies for each in found])
        rows = np.concatenate([each.rows for each in found])
        order = np.argsort(latencies)
        shares = np.cumsum(rows[order]) / rows.sum()
        return Latency(
            rows=int(rows.sum()),
            mean=_mean(found),
            p99=float(latencies[order][np.searchsorted(shares, 0.99)]),
            early_mean=_mean([each for each in found if each.at < begin + third]),
            late_mean=_mean([each for each in found if each.at >= end - third]),
        )


def _mean(deliveries: Sequence[Delivery]) -> float:
    rows = sum(int(each.rows.sum()) for each in deliveries)
    return sum(float((each.latencies * each.rows).sum()) for each in deliveries) / rows if rows else 0.0
