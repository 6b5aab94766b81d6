"""Rows without the rows: how many there are, and when they arrived at their source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST_BINS = 64


class Rows:
    """Rows that go together, never changed: `weights[i]` of them arrived at `times[i]`, `count` in all.

    Weights may be fractions, where a stage makes fewer or more rows of what it takes.

    >>> first, rest = Rows([1.0, 2.0], [30.0, 10.0]).cut(35)
    >>> first.count, rest.count, rest.times
    (35, 5, [2.0])
    """

    __slots__ = ("count", "times", "weights")

    def __init__(self, times: Sequence[float], weights: Sequence[float], count: int | None = None):
        self.times = times
        self.weights = weights
        self.count = round(sum(weights)) if count is None else count

    def cut(self, count: int) -> tuple[Rows, Rows]:
        """The first `count` of them, and the others."""
        left, place = float(count), 0
        while place < len(self.weights) - 1 and self.weights[place] <= left:
            left -= self.weights[place]
            place += 1
        edge = self.weights[place]
        first = Rows([*self.times[:place], self.times[place]], [*self.weights[:place], left], count)
        if left <= 0.0:
            first = Rows(self.times[:place], self.weights[:place], count)
        rest = [max(edge - left, 0.0), *self.weights[place + 1 :]]
        return first, Rows(self.times[place:], rest, self.count - count)

    def scaled(self, count: int) -> Rows:
        """The same spread over time for `count` rows."""
        if count == self.count:
            return self
        factor = count / self.count
        return Rows(self.times, [weight * factor for weight in self.weights], count)

    def thinned(self) -> Rows:
        """With at most 64 times: neighbours share their mean, so that the mean of all stays."""
        size = len(self.times)
        if size <= MOST_BINS:
            return self
        step = -(-size // MOST_BINS)
        times, weights = [], []
        for begin in range(0, size, step):
            some = self.weights[begin : begin + step]
            total = sum(some)
            pairs = zip(self.times[begin : begin + step], some, strict=True)
            times.append(sum(time * weight for time, weight in pairs) / total if total else self.times[begin])
            weights.append(total)
        return Rows(times, weights, self.count)


NO_ROWS = Rows((), (), 0)


def joined(parts: Sequence[Rows]) -> Rows:
    """All of them as one."""
    if len(parts) == 1:
        return parts[0]
    times = [time for part in parts for time in part.times]
    weights = [weight for part in parts for weight in part.weights]
    return Rows(times, weights, sum(part.count for part in parts))


def at(times: Iterable[float]) -> Rows:
    """One row at each of these times."""
    listed = list(times)
    return Rows(listed, [1.0] * len(listed), len(listed))
