"""How many rows a stage makes of each one, by the queue that it came from."""

from __future__ import annotations

from collections.abc import Mapping

FADE = 0.8
"""What an interval weighs against the next one."""
STEPS = 50


class FlowMeter:
    """Follows the turns of one stage. Not safe for threads.

    Of one queue it is rows out over rows in; of several the factors that are nearest to what turns with so
    many rows of each made, by least squares, none of them negative.

    >>> meter = FlowMeter()
    >>> for news, again, made in ((1, 4, 5), (2, 0, 8), (1, 8, 6)):
    ...     meter.passed({"news": news, "again": again}, made)
    >>> {queue: round(rows, 2) for queue, rows in meter.rows_made.items()}
    {'news': 4.0, 'again': 0.25}
    """

    def __init__(self) -> None:
        self._both: dict[tuple[str, str], float] = {}
        """By two queues, the sum over turns of the products of their rows."""
        self._made: dict[str, float] = {}
        self._sums: dict[str, float] = {}
        self._out = 0.0

    def passed(self, rows_in: Mapping[str, int], rows_out: int) -> None:
        """A turn took so many rows of each queue."""
        for one, rows in rows_in.items():
            self._sums[one] = self._sums.get(one, 0.0) + rows
            self._made[one] = self._made.get(one, 0.0) + rows * rows_out
            for other, more in rows_in.items():
                self._both[one, other] = self._both.get((one, other), 0.0) + rows * more
        self._out += rows_out

    def fade(self) -> None:
        """An interval has ended."""
        for sums in (self._both, self._made, self._sums):
            for key in sums:
                sums[key] *= FADE  # type: ignore[index]
        self._out *= FADE

    @property
    def rows_made(self) -> dict[str, float]:
        """By queue; without those that no row came from."""
        queues = [queue for queue, rows in self._sums.items() if rows > 0.0]
        if len(queues) == 1:
            return {queues[0]: self._out / self._sums[queues[0]]}
        found = dict.fromkeys(queues, 1.0)
        for _ in range(STEPS):
            for one in queues:
                others = sum(
                    self._both.get((one, other), 0.0) * found[other] for other in queues if other != one
                )
                found[one] = max((self._made[one] - others) / self._both[one, one], 0.0)
        return found
