"""From what models estimate to what is measured: E[T] is only an estimate, so that K is tuned on E[T^]."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf

PAIRS = 60
"""That are remembered."""
FLAT = 1e-3
"""Of the mean factor: a slope below that cannot be turned round."""
LEAST_SPREAD = 1e-3
"""Of estimates around their mean, squared and relative: with less, a slope would be made of noise."""


@dataclass(frozen=True)
class Line:
    """measured = offset + slope * estimate, from `pairs` pairs; the slope is positive, to be inverted."""

    offset_seconds: float = 0.0
    slope: float = 1.0
    pairs: int = 0

    def corrected(self, estimate_seconds: float) -> float:
        """What would be measured where that is estimated."""
        return self.offset_seconds + self.slope * estimate_seconds

    def estimate_for(self, measured_seconds: float) -> float:
        """What must be estimated for that to be measured; 0 or less where nothing leads to it."""
        return (measured_seconds - self.offset_seconds) / self.slope


@dataclass
class FineTuning:
    """Learns that line by least squares over recent pairs.

    Pairs of about one estimate tell a factor only; what models leave out (network, queues on disk) is then
    taken to grow with it. DRS speaks of polynomials: a line cannot turn round where nothing was measured.

    >>> tuning = FineTuning()
    >>> for estimate, measured in [(0.2, 0.5), (0.4, 0.9), (0.3, 0.7)]:
    ...     tuning.learn(estimate, measured)
    >>> round(tuning.line.corrected(0.5), 3), round(tuning.line.estimate_for(0.6), 3)
    (1.1, 0.25)
    """

    _pairs: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=PAIRS))

    def learn(self, estimate_seconds: float, measured_seconds: float) -> None:
        """Takes in a pair; an endless one teaches nothing."""
        if 0.0 < estimate_seconds < inf and 0.0 < measured_seconds < inf:
            self._pairs.append((estimate_seconds, measured_seconds))

    @property
    def line(self) -> Line:
        """As learned so far; without pairs, what is estimated is what is measured."""
        return line_through(tuple(self._pairs))


def line_through(pairs: tuple[tuple[float, float], ...]) -> Line:
    """The line of least squares, or the factor where the pairs tell no more."""
    count = len(pairs)
    if not count:
        return Line()
    mean_x = sum(x for x, _ in pairs) / count
    mean_y = sum(y for _, y in pairs) / count
    spread = sum((x - mean_x) ** 2 for x, _ in pairs) / count
    if spread > LEAST_SPREAD * mean_x**2:
        slope = sum((x - mean_x) * (y - mean_y) for x, y in pairs) / count / spread
        offset = mean_y - slope * mean_x
        # A line that falls or is flat, or lets measured times shrink to nothing too early, is noise.
        if slope > FLAT * mean_y / mean_x and offset >= 0.0:
            return Line(offset, slope, count)
    return Line(0.0, mean_y / mean_x, count)
