"""Advertisement events: 1,000 ads of 100 campaigns, ten each; an event is a view, a click or a purchase."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SCHEMA = "source int, ad int, kind int, revenue double, at timestamp"
ADS = 1_000
ADS_PER_CAMPAIGN = 10
VIEW, CLICK, PURCHASE = 0, 1, 2
SHARES = (0.6, 0.3, 0.1)
MICROS = 1_000_000
_STAMP = pa.timestamp("us", "UTC")


def event_micros(rows: int, begin: float, end: float) -> np.ndarray:
    """Event times in microseconds: evenly in [begin, end), ascending.

    >>> event_micros(4, 10.0, 11.0).tolist()
    [10000000, 10250000, 10500000, 10750000]
    """
    first, span = round(begin * MICROS), round(end * MICROS) - round(begin * MICROS)
    return first + np.arange(rows, dtype=np.int64) * span // max(rows, 1)


def last_micros(rows: int, begin: float, end: float) -> int:
    """The last of these event times, without making them."""
    first, span = round(begin * MICROS), round(end * MICROS) - round(begin * MICROS)
    return first + (rows - 1) * span // rows


class AdEvents:
    """Tables of events, the same for the same seed and the same calls.

    The columns are drawn once and then gone round: 100,000 rows cost a millisecond, not a draw each.
    """

    def __init__(self, seed: int = 0, pool: int = 1 << 17):
        chance = np.random.default_rng(seed)
        ads = chance.integers(0, ADS, pool, dtype=np.int32)
        kinds = chance.choice(np.array([VIEW, CLICK, PURCHASE], dtype=np.int32), pool, p=SHARES)
        revenues = np.round(chance.exponential(1.0, pool), 4)
        # Twice, so that a stretch of rows that begins anywhere is one slice.
        self._columns = [pa.array(np.tile(each, 2)) for each in (ads, kinds, revenues)]
        self._pool = pool
        self._next = 0

    def rows(self, count: int, begin: float, end: float, source: int = 0) -> pa.Table:
        """`count` events of a source, from `begin` up to, not including, `end` (epoch seconds)."""
        stamps = pa.array(event_micros(count, begin, end)).view(_STAMP)
        sources = pa.array(np.full(count, source, dtype=np.int32))
        columns = [self._stretch(column, count) for column in self._columns]
        self._next = (self._next + count) % self._pool
        return pa.table([sources, *columns, stamps], names=["source", "ad", "kind", "revenue", "at"])

    def _stretch(self, column: pa.Array, count: int) -> pa.ChunkedArray:
        pieces, left = [column.slice(self._next, min(count, self._pool))], count - self._pool
        while left > 0:
            pieces.append(column.slice(self._next, min(left, self._pool)))
            left -= self._pool
        return pa.chunked_array(pieces)
