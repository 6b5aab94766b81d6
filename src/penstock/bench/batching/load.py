"""What is fed in one run of the Wi-Fi workflow, and what came of it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from penstock.bench.batching.expected import Expected
from penstock.bench.batching.meter import Interval, ProductMeter, told
from penstock.errors import PenstockError
from penstock.workloads.wifi.associations import BEGIN, TICK_SECONDS, Arrival, generate
from penstock.workloads.wifi.sharing import PRODUCTS

LOOK_SECONDS = 0.5


def arrivals_of(rates: Sequence[tuple[float, float]], seed: int) -> list[Arrival]:
    """Rows at each of (rate, seconds) in turn; event time goes on from part to part."""
    found: list[Arrival] = []
    begin = 0.0
    for place, (rate, seconds) in enumerate(rates):
        part = generate(rate, seconds, seed=seed + place, begin=BEGIN + timedelta(seconds=begin))
        found += [(begin + at, table) for at, table in part]
        begin += seconds
    return found


def evenly(arrivals: Sequence[Arrival], seconds: float) -> list[Arrival]:
    """The same rows, as many in every tick: a load without bursts."""
    rows = pa.concat_tables([table for _, table in arrivals])
    step = round(seconds * 1e6) // rows.num_rows
    first = round(BEGIN.timestamp() * 1e6)
    at = pa.array(range(first, first + step * rows.num_rows, step)).cast(pa.timestamp("us", "UTC"))
    even = rows.set_column(rows.column_names.index("at"), rows.schema.field("at"), at)
    each = max(round(rows.num_rows * TICK_SECONDS / seconds), 1)
    starts = range(0, rows.num_rows, each)
    # A row arrives at the end of its tick.
    return [((start + each) * step / 1e6, even.slice(start, each)) for start in starts]


def rows_by_second(arrivals: Sequence[Arrival]) -> list[float]:
    """How many rows arrive in each second."""
    counts = [0.0] * math.ceil(max((seconds for seconds, _ in arrivals), default=0.0))
    for seconds, table in arrivals:
        counts[math.ceil(seconds) - 1] += table.num_rows
    return counts


class Feed(threading.Thread):
    """Hands rows over when they are due."""

    def __init__(self, arrivals: Sequence[Arrival], put: Any, base: float):
        super().__init__(name="feed", daemon=True)
        self._arrivals, self._put, self._base = arrivals, put, base
        self._stopping = threading.Event()
        self.lag_seconds = 0.0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for seconds, table in self._arrivals:
                due = self._base + seconds
                if self._stopping.wait(max(due - time.time(), 0.0)):
                    return
                self._put(table, due)
                self.lag_seconds = max(self.lag_seconds, time.time() - due)
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        self._stopping.set()
        self.join(10)


class Load:
    """What is fed in one run, and what came of it."""

    def __init__(
        self,
        arrivals: list[Arrival],
        expected: Expected,
        meters: dict[str, ProductMeter],
        warmup: float,
        seconds: float,
    ):
        self.arrivals, self.expected, self.meters = arrivals, expected, meters
        self._warmup, self._seconds = warmup, seconds
        self.base = 0.0

    def begin(self) -> None:
        self.base = float(math.ceil(time.time()) + 2)

    @property
    def interval(self) -> Interval:
        return Interval(self.base + self._warmup, self.base + self._seconds)

    def run(self, feed: Feed, failed: Any) -> None:
        """Feeds it all, and returns when the time is over."""
        feed.start()
        while (left := self.interval.end - time.time()) > 0:
            time.sleep(min(left, LOOK_SECONDS))
            if error := failed():
                raise PenstockError(f"the workflow must run on, but {error}")
            if feed.error is not None:
                raise PenstockError(f"all rows must be fed, but: {feed.error}") from feed.error
        feed.stop()

    def told(self, feed: Feed) -> dict[str, Any]:
        latencies = self.expected.latencies(self.base, self.meters)
        products = {
            name: told(each, self.interval, PRODUCTS[name].latency_seconds)
            for name, each in latencies.items()
        }
        counted = [each["in_time"] for each in products.values() if each["in_time"] == each["in_time"]]
        return {
            "products": products,
            "in_time": sum(counted) / len(counted) if counted else math.nan,
            "feed_lag_seconds": feed.lag_seconds,
        }
