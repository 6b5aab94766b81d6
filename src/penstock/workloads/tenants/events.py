"""Advertisement events: 1,000 ads of 100 campaigns, ten each; an event is a view, a click or a purchase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SCHEMA = "source int, ad int, kind int, revenue double, at timestamp"
PAYLOAD_SCHEMA = "source int, payload string, at timestamp"
"""Events as they often come: text that the query has to parse."""
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

    The columns are drawn once and then gone round: 100,000 rows cost a millisecond, not a draw each. With
    `payload` an event is JSON text of some 65 characters, with the same values.
    """

    def __init__(self, seed: int = 0, pool: int = 1 << 17, *, payload: bool = False):
        chance = np.random.default_rng(seed)
        ads = chance.integers(0, ADS, pool, dtype=np.int32)
        kinds = chance.choice(np.array([VIEW, CLICK, PURCHASE], dtype=np.int32), pool, p=SHARES)
        revenues = np.round(chance.exponential(1.0, pool), 4)
        columns = [pa.array(each) for each in (ads, kinds, revenues)]
        self._names = ["payload"] if payload else ["ad", "kind", "revenue"]
        # Twice, so that a stretch of rows that begins anywhere is one slice.
        kept = [_payloads(columns, chance)] if payload else columns
        self._columns = [pa.concat_arrays([each, each]) for each in kept]
        self._pool = pool
        self._next = 0

    def rows(self, count: int, begin: float, end: float, source: int = 0) -> pa.Table:
        """`count` events of a source, from `begin` up to, not including, `end` (epoch seconds)."""
        stamps = pa.array(event_micros(count, begin, end)).view(_STAMP)
        sources = pa.array(np.full(count, source, dtype=np.int32))
        columns = [self._stretch(column, count) for column in self._columns]
        self._next = (self._next + count) % self._pool
        return pa.table([sources, *columns, stamps], names=["source", *self._names, "at"])

    def _stretch(self, column: pa.Array, count: int) -> pa.ChunkedArray:
        pieces, left = [column.slice(self._next, min(count, self._pool))], count - self._pool
        while left > 0:
            pieces.append(column.slice(self._next, min(left, self._pool)))
            left -= self._pool
        return pa.chunked_array(pieces)


def _payloads(columns: Sequence[pa.Array], chance: np.random.Generator) -> pa.Array:
    users = [pa.array(chance.integers(1_000_000, 2_000_000, len(columns[0]))) for _ in range(2)]
    parts = dict(zip(("user", "page", "ad", "kind", "revenue"), [*users, *columns], strict=True))
    texts: list[Any] = []
    for place, (name, values) in enumerate(parts.items()):
        texts += [f'{"," if place else "{"}"{name}":', values.cast(pa.string())]
    return pc.binary_join_element_wise(*texts, "}", "")
