"""Smoothing of what is measured in intervals: by alpha, or over a window (DRS, section IV-A)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from penstock.errors import PenstockError


class Smoothing(Protocol):
    """Makes a steady figure of a noisy one."""

    def smooth(self, value: float) -> float:
        """Takes in what the last interval measured, d(n), and gives the smoothed figure, D(n)."""
        ...


@dataclass
class AlphaSmoothing:
    """D(n) = alpha D(n-1) + (1 - alpha) d(n); the first measurement counts whole.

    >>> smoothing = AlphaSmoothing(0.75)
    >>> [smoothing.smooth(value) for value in (8.0, 4.0, 4.0)]
    [8.0, 7.0, 6.25]
    """

    alpha: float
    _smoothed: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha < 1.0:
            raise PenstockError(
                f"alpha must be 0 or more and less than 1, got {self.alpha}: nothing new would ever count"
            )

    def smooth(self, value: float) -> float:
        last = value if self._smoothed is None else self._smoothed
        self._smoothed = self.alpha * last + (1.0 - self.alpha) * value
        return self._smoothed


@dataclass
class WindowSmoothing:
    """D(n) is the mean of the last w measurements, or of those there are.

    >>> smoothing = WindowSmoothing(2)
    >>> [smoothing.smooth(value) for value in (8.0, 4.0, 4.0)]
    [8.0, 6.0, 4.0]
    """

    window: int
    _recent: deque[float] = field(default_factory=deque)

    def __post_init__(self) -> None:
        if self.window < 1:
            raise PenstockError(
                f"a window must have at least 1 measurement, got {self.window}: no mean is of none"
            )

    def smooth(self, value: float) -> float:
        self._recent.append(value)
        if len(self._recent) > self.window:
            self._recent.popleft()
        return sum(self._recent) / len(self._recent)
