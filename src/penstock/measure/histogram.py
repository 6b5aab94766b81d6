"""Latency of rows as a histogram of fixed size."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.errors import PenstockError

SHORTEST_SECONDS = 10e-6
LONGEST_SECONDS = 1e6
GROWTH = 1.04  # a bucket's geometric middle is at most sqrt(1.04) - 1 = 1.98 % from any value in it

_LOG_GROWTH = math.log(GROWTH)
# Bucket 0 holds all below the shortest, the last one all above the longest.
_LAST = math.ceil(math.log(LONGEST_SECONDS / SHORTEST_SECONDS) / _LOG_GROWTH) + 1


class HistogramError(PenstockError):
    """A weight, a share or a stored form that no histogram can have."""


class LatencyHistogram:
    """Quantiles and shares of row latencies, within 2 % from 10 microseconds to 1,000,000 seconds.

    Rows are weights and may be fractional. Latencies outside of that range are counted, as its
    nearest end; a negative latency (a clock was set back) counts as zero. The least, the greatest
    and the mean are exact. Without rows every figure is 0.0, also `share_within`: look at `count`.
    """

    __slots__ = ("_buckets", "_count", "_greatest", "_least", "_row_seconds")

    def __init__(self) -> None:
        self._buckets = array("d", bytes(8 * (_LAST + 1)))
        self._count = 0.0
        self._row_seconds = 0.0
        self._least = math.inf
        self._greatest = 0.0

    @property
    def count(self) -> float:
        """Rows added so far."""
        return self._count

    @property
    def mean(self) -> float:
        """Mean latency of a row in seconds."""
        return self._row_seconds / self._count if self._count else 0.0

    @property
    def least(self) -> float:
        """Shortest latency in seconds."""
        return self._least if self._count else 0.0

    @property
    def greatest(self) -> float:
        """Longest latency in seconds."""
        return self._greatest

    def add(self, seconds: float, rows: float = 1.0) -> None:
        """Counts `rows` rows that took `seconds` each; takes constant time."""
        if not 0.0 <= rows < math.inf:
            raise HistogramError(f"rows must be zero or more, got {rows}: they are the weight of a latency")
        if not -math.inf < seconds < math.inf:
            raise HistogramError(
                f"a latency must be a finite number of seconds, got {seconds}: no bucket holds it"
            )
        if rows == 0.0:
            return
        seconds = max(seconds, 0.0)
        self._buckets[_bucket(seconds)] += rows
        self._count += rows
        self._row_seconds += seconds * rows
        self._least = min(self._least, seconds)
        self._greatest = max(self._greatest, seconds)

    def add_many(self, latencies: Iterable[tuple[float, float]]) -> None:
        """Counts pairs of (seconds, rows)."""
        for seconds, rows in latencies:
            self.add(seconds, rows)

    def add_block(self, seconds: Sequence[float], rows: Sequence[float]) -> None:
        """Counts `rows[i]` rows that took `seconds[i]` each, for all i: quicker than `add` for thousands."""
        times, weights = np.maximum(np.asarray(seconds, float), 0.0), np.asarray(rows, float)
        if not (np.isfinite(times).all() and np.isfinite(weights).all() and (weights >= 0.0).all()):
            raise HistogramError("latencies and rows must be finite and not negative: no bucket holds others")
        times, weights = times[weights > 0.0], weights[weights > 0.0]
        if not len(times):
            return
        places = 1 + np.log(np.maximum(times, SHORTEST_SECONDS) / SHORTEST_SECONDS) / _LOG_GROWTH
        buckets = np.where(times < SHORTEST_SECONDS, 0, np.minimum(places.astype(int), _LAST))
        counts = np.frombuffer(self._buckets)
        counts += np.bincount(buckets, weights, len(counts))
        self._count += float(weights.sum())
        self._row_seconds += float(times @ weights)
        self._least = min(self._least, float(times.min()))
        self._greatest = max(self._greatest, float(times.max()))

    def quantile(self, q: float) -> float:
        """Latency in seconds that the share `q` of the rows does not exceed; 0 and 1 are exact."""
        return self.quantiles(q)[0]

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """The quantile of each share: quicker than one after the other."""
        for q in shares:
            if not 0.0 <= q <= 1.0:
                raise HistogramError(
                    f"a quantile must be between 0 and 1, got {q}: 0.99 is the 99th percentile"
                )
        if not self._count:
            return (0.0,) * len(shares)
        reached = np.cumsum(np.frombuffer(self._buckets))
        # The sum of the buckets may be a rounding error short of the count.
        most = float(reached[-1])
        buckets = reached.searchsorted([min(q * self._count, most) for q in shares]).tolist()
        return tuple(self._quantile(q, bucket) for q, bucket in zip(shares, buckets, strict=True))

    def _quantile(self, q: float, bucket: int) -> float:
        if q in (0.0, 1.0):
            return self._greatest if q else self._least
        return min(max(_middle(bucket), self._least), self._greatest)

    def share_within(self, seconds: float) -> float:
        """Share (0 to 1) of the rows that took at most `seconds`."""
        return self.counts_within(seconds)[0] / self._count if self._count else 0.0

    def counts_within(self, *bounds: float) -> tuple[float, ...]:
        """Rows that took at most each of these seconds, which ascend: quicker than one after the other."""
        reached = np.concatenate(([0.0], np.cumsum(np.frombuffer(self._buckets))))
        return tuple(self._count_within(seconds, reached) for seconds in bounds)

    def _count_within(self, seconds: float, reached: np.ndarray) -> float:
        """`reached[i]`: the rows in the buckets before bucket i."""
        if not self._count or seconds < self._least:
            return 0.0
        if seconds >= self._greatest:
            return self._count
        bucket = _bucket(seconds)
        within = float(reached[bucket]) + self._buckets[bucket] * _part_of_bucket(bucket, seconds)
        return min(within, self._count)

    def merge(self, other: LatencyHistogram) -> None:
        """Adds all rows of `other`, which stays as it is."""
        buckets = np.frombuffer(self._buckets)
        buckets += np.frombuffer(other._buckets)
        self._count += other._count
        self._row_seconds += other._row_seconds
        self._least = min(self._least, other._least)
        self._greatest = max(self._greatest, other._greatest)

    def since(self, earlier: LatencyHistogram) -> LatencyHistogram:
        """The rows added after `earlier` was this histogram, each with the latency of its bucket."""
        # With numpy: whoever watches asks for this every second, of every sink.
        made, now = LatencyHistogram(), np.frombuffer(self._buckets)
        rows = np.maximum(now - np.frombuffer(earlier._buckets), 0.0)
        filled = np.flatnonzero(rows)
        if not len(filled):
            return made
        made._buckets = array("d", rows.tobytes())
        made._count = float(rows.sum())
        made._row_seconds = sum(_middle(int(bucket)) * float(rows[bucket]) for bucket in filled)
        made._least, made._greatest = _middle(int(filled[0])), _middle(int(filled[-1]))
        return made

    def copy(self) -> LatencyHistogram:
        """The same rows in a histogram of its own."""
        made = LatencyHistogram()
        made._buckets = self._buckets[:]
        made._count, made._row_seconds = self._count, self._row_seconds
        made._least, made._greatest = self._least, self._greatest
        return made

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`, with the buckets that hold rows only."""
        return {
            "growth": GROWTH,
            "shortest_seconds": SHORTEST_SECONDS,
            "count": self._count,
            "row_seconds": self._row_seconds,
            "least": self.least,
            "greatest": self._greatest,
            "buckets": {str(bucket): rows for bucket, rows in enumerate(self._buckets) if rows},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> LatencyHistogram:
        """The histogram that `to_json` was called on."""
        scale = (stored["growth"], stored["shortest_seconds"])
        if scale != (GROWTH, SHORTEST_SECONDS):
            raise HistogramError(
                f"a stored histogram must have growth {GROWTH} from {SHORTEST_SECONDS} s, "
                f"got growth {scale[0]} from {scale[1]} s: its buckets cannot be read as these"
            )
        histogram = cls()
        for bucket, rows in stored["buckets"].items():
            if not 0 <= int(bucket) <= _LAST:
                raise HistogramError(
                    f"a stored histogram has buckets 0 to {_LAST}, got {bucket}: it is damaged"
                )
            histogram._buckets[int(bucket)] = rows
        histogram._count = stored["count"]
        histogram._row_seconds = stored["row_seconds"]
        histogram._least = stored["least"] if histogram._count else math.inf
        histogram._greatest = stored["greatest"]
        return histogram

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LatencyHistogram) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # it changes with every row

    def __repr__(self) -> str:
        p50, p99 = self.quantile(0.5), self.quantile(0.99)
        return f"LatencyHistogram({self._count:,.0f} rows, p50 {p50:.3g} s, p99 {p99:.3g} s)"


def _bucket(seconds: float) -> int:
    if seconds < SHORTEST_SECONDS:
        return 0
    return min(1 + int(math.log(seconds / SHORTEST_SECONDS) / _LOG_GROWTH), _LAST)


def _middle(bucket: int) -> float:
    if bucket == 0:
        return 0.0
    if bucket == _LAST:
        return LONGEST_SECONDS
    return SHORTEST_SECONDS * math.exp((bucket - 0.5) * _LOG_GROWTH)


def _part_of_bucket(bucket: int, seconds: float) -> float:
    """How far into its bucket a latency lies, 0 to 1, on the logarithmic scale."""
    if bucket == 0:
        return seconds / SHORTEST_SECONDS
    if bucket == _LAST:
        return 0.0
    return min(max(math.log(seconds / SHORTEST_SECONDS) / _LOG_GROWTH - (bucket - 1), 0.0), 1.0)
