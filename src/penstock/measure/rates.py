"""How fast rows come: a quick look and a steady one."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

QUICK_SECONDS, STEADY_SECONDS = 5.0, 30.0


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows per second of late: over some seconds, and over half a minute."""

    quick: float
    steady: float


class RateMeter:
    """Rates from a count that only grows. What is past fades; the first looks weigh as much as they last."""

    def __init__(self, count: float, now: float):
        self._count, self._at, self._began = count, now, now
        self._quick = self._steady = 0.0

    def look(self, count: float, now: float) -> Rate:
        """The rates now; `count` is of all rows so far."""
        seconds = now - self._at
        if seconds > 0.0:
            fresh = max(count - self._count, 0.0) / seconds
            self._quick = self._faded(self._quick, fresh, seconds, QUICK_SECONDS)
            self._steady = self._faded(self._steady, fresh, seconds, STEADY_SECONDS)
            self._count, self._at = count, now
        return Rate(self._quick, self._steady)

    def _faded(self, rate: float, fresh: float, seconds: float, memory: float) -> float:
        # While little was seen, the mean of it.
        seen = self._at - self._began
        weight = max(1.0 - exp(-seconds / memory), seconds / (seen + seconds))
        return rate + weight * (fresh - rate)
