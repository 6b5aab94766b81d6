"""Which rows Spark's `rate` source has at which moment: plain arithmetic, exact to its millisecond."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class RateClock:
    """A rate source without ramp-up, by the moment it was created and its rate.

    At `created + k` seconds the rows of its k-th second become readable, all at once. Their time stamps
    are spread evenly over that second and rounded to milliseconds, so that at more than 2,000 rows/s
    the last of them carry the first millisecond of the next one.
    """

    created_ms: int
    rows_per_second: int

    def due_seconds(self, now: float) -> int:
        """How many of its seconds are readable by `now`."""
        return max(math.floor(now * 1000 - self.created_ms) // 1000, 0)

    def due_rows(self, now: float) -> int:
        """How many of its rows are readable by `now`."""
        return self.due_seconds(now) * self.rows_per_second

    def last_event_ms(self, seconds: int) -> int:
        """The greatest time stamp of its first `seconds` seconds."""
        return self.created_ms + 1000 * seconds + math.floor(0.5 - 1000 / self.rows_per_second)

    def completed_at(self, window_end: float) -> float:
        """When the first row at or after `window_end` becomes readable: the window's frontier."""
        missing_ms = round(window_end * 1000) - self.last_event_ms(0)
        return (self.created_ms + 1000 * max(math.ceil(missing_ms / 1000), 1)) / 1000

    def completed_between(
        self, window_seconds: int, begin: float, end: float
    ) -> Iterator[tuple[float, float]]:
        """(end, completed at) of the tumbling windows that are completed from `begin` until before `end`."""
        first = self.created_ms // 1000 // window_seconds + 1
        number = max(first, math.floor(begin / window_seconds) - 1)
        while (completed := self.completed_at(number * window_seconds)) < end:
            if completed >= begin:
                yield float(number * window_seconds), completed
            number += 1

    def rows_in(self, window_end: float, window_seconds: int) -> int | None:
        """The count that a window must show; None for the first one, which begins before the source does."""
        if (window_end - window_seconds) * 1000 <= self.created_ms:
            return None
        return self.rows_per_second * window_seconds
