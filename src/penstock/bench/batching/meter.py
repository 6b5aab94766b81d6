"""What came out of each product, when, and how much of it was in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NEVER_SECONDS = 1e6
"""Stands for what never came, where a number is needed."""


class ProductMeter:
    """A sink: counts rows by the moment they came, and keeps when each window's first row did."""

    def __init__(self, clock: Callable[[], float] = time.time):
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: list[tuple[float, int]] = []
        self._windows: dict[float, float] = {}

    def take(self, table: pa.Table, batch: int = 0) -> None:
        now = self._clock()
        with self._lock:
            self._counts.append((now, table.num_rows))
            if "window" in table.column_names:
                for end in pc.struct_field(table["window"].combine_chunks(), "end").unique().to_pylist():
                    self._windows.setdefault(end.timestamp(), now)

    @property
    def counts(self) -> list[tuple[float, int]]:
        """(when, rows), in the order they came."""
        with self._lock:
            return list(self._counts)

    @property
    def windows(self) -> dict[float, float]:
        """By the window's end, when its first row came."""
        with self._lock:
            return dict(self._windows)


@dataclass(frozen=True)
class Interval:
    """The measured part of a run; all in epoch seconds."""

    begin: float
    end: float

    def share_in_time(self, latencies: Sequence[tuple[float, float]], target_seconds: float) -> float:
        """Of (due, latency), the share within the target; those whose time is not up yet do not count."""
        counted = [
            latency <= target_seconds
            for due, latency in latencies
            if self.begin <= due and due + target_seconds <= self.end
        ]
        return sum(counted) / len(counted) if counted else nan


def row_latencies(due: Sequence[float], counts: Sequence[tuple[float, int]]) -> list[tuple[float, float]]:
    """(due, latency) of each result: the first row that came is the first that was due, and so on.

    >>> row_latencies([10.0, 10.25, 10.5], [(10.5, 2)])
    [(10.0, 0.5), (10.25, 0.25), (10.5, inf)]
    """
    came: list[float] = []
    for when, rows in counts:
        came += [when] * rows
    return [
        (moment, max(came[place] - moment, 0.0) if place < len(came) else inf)
        for place, moment in enumerate(due)
    ]


def window_latencies(due: Mapping[float, float], came: Mapping[float, float]) -> list[tuple[float, float]]:
    """(complete, latency) of each window, by its end."""
    return [(moment, max(came.get(end, inf) - moment, 0.0)) for end, moment in sorted(due.items())]


def quantile_of(latencies: Sequence[tuple[float, float]], interval: Interval, share: float) -> float:
    """Of the results due in the interval; infinite where so many are missing."""
    found = sorted(latency for due, latency in latencies if interval.begin <= due < interval.end)
    return found[min(int(share * len(found)), len(found) - 1)] if found else nan


def told(
    latencies: Sequence[tuple[float, float]], interval: Interval, target_seconds: float
) -> dict[str, Any]:
    """One product's figures, as JSON."""
    due = [each for each in latencies if interval.begin <= each[0] < interval.end]
    return {
        "in_time": interval.share_in_time(latencies, target_seconds),
        "results": len(due),
        "came": sum(latency < inf for _, latency in latencies),
        "p50": min(quantile_of(latencies, interval, 0.5), NEVER_SECONDS),
        "p99": min(quantile_of(latencies, interval, 0.99), NEVER_SECONDS),
    }
