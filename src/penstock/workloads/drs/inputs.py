"""What comes in, and when all of it is done."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError

SCHEMA = "input BIGINT"
ARROW = pa.schema([("input", pa.int64())])
Gaps = Literal["even", "uniform", "poisson"]
GAPS = ("even", "uniform", "poisson")


@dataclass(frozen=True)
class Inputs:
    """Inputs one by one, for so many seconds at each rate in turn.

    Gaps are even, uniform from half to one and a half of their mean, or those of a Poisson process.
    """

    rates: tuple[tuple[float, float], ...]
    gaps: Gaps = "poisson"
    seed: int = 1

    def __post_init__(self) -> None:
        if self.gaps not in GAPS or not all(rate > 0.0 for rate, _ in self.rates):
            raise PenstockError(
                f"inputs must come at positive rates and {', '.join(GAPS)}, "
                f"got {self.rates} and {self.gaps!r}: nothing would come"
            )

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.rates)

    def arrivals(self) -> list[tuple[float, pa.Table]]:
        """(seconds from the start, one row of SCHEMA)."""
        chance, begin = np.random.default_rng(self.seed), 0.0
        found: list[tuple[float, pa.Table]] = []
        for rate, seconds in self.rates:
            due = begin + self._gap(chance) / rate
            while due < begin + seconds:
                found.append((due, pa.table({"input": [len(found)]}, schema=ARROW)))
                due += self._gap(chance) / rate
            begin += seconds
        return found

    def _gap(self, chance: np.random.Generator) -> float:
        if self.gaps == "poisson":
            return float(chance.exponential())
        return float(chance.uniform(0.5, 1.5)) if self.gaps == "uniform" else 1.0


class Finished:
    """A callback sink that notes when all rows of an input have come."""

    def __init__(self, results: int, clock: Callable[[], float] = time.time):
        self._results, self._clock = results, clock
        self._rows: Counter[int] = Counter()
        self._lock = threading.Lock()
        self.times: dict[int, float] = {}

    def __call__(self, table: pa.Table, batch: int) -> None:
        now = self._clock()
        with self._lock:
            self._rows.update(table["input"].to_pylist())
            for each in set(table["input"].to_pylist()):
                if self._rows[each] >= self._results:
                    self.times.setdefault(each, now)

    def rows(self) -> dict[int, int]:
        """How many rows of each input have come."""
        with self._lock:
            return dict(self._rows)
