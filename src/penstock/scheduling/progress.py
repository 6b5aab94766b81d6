"""From stream progress to time: when a frontier will be there, and when it was."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf
from statistics import median_low
from typing import NamedTuple

IDLE_SECONDS = 10.0
KEPT = 64
MOST_STEPS = 8192
MANY_SOURCES = 256
ROUNDED_SECONDS = 5e-7
"""Half of the least difference between two event times; epoch seconds have no more digits."""


class ProgressMap:
    """When a logical time will be observed: a running linear fit over the last progresses seen (PROGRESSMAP).

    With `ingestion` logical time is the time of arrival, and nothing is fitted. Progress comes in steps, and
    a time within one is observed with its end: steps are taken to be as long as those before.

    >>> known = ProgressMap()
    >>> for second in range(5): known.update(progress=second, time=second + 2.0)
    >>> known.time_of(11.0), known.time_of(11.2)
    (13.0, 14.0)
    """

    def __init__(self, *, ingestion: bool = False) -> None:
        self._ingestion = ingestion
        self._seen: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._line: _Line | None = None

    def update(self, progress: float, time: float) -> None:
        if not self._ingestion and (not self._seen or progress > self._seen[-1][0]):
            self._seen.append((progress, time))
            self._line = None

    def time_of(self, progress: float) -> float | None:
        """None while too little was seen, or where time runs backwards as progress goes on."""
        if self._ingestion:
            return progress
        if len(self._seen) < 2:
            return None
        # Asked much more often than anything comes.
        self._line = self._line or _Line.through(self._seen)
        return self._line.time_of(progress)


class _Line(NamedTuple):
    """Counted from its middle: epoch seconds squared leave no digits for milliseconds."""

    progress: float
    time: float
    slope: float
    last: float
    step: float

    @classmethod
    def through(cls, seen: Sequence[tuple[float, float]]) -> _Line:
        p0, t0 = seen[0]
        n = len(seen)
        mean_p = sum(p - p0 for p, _ in seen) / n
        mean_t = sum(t - t0 for _, t in seen) / n
        spread = sum((p - p0 - mean_p) ** 2 for p, _ in seen)
        slope = sum((p - p0 - mean_p) * (t - t0 - mean_t) for p, t in seen) / spread
        # Not the mean: after a pause one of them is as long as that.
        step = median_low(later - sooner for (sooner, _), (later, _) in pairwise(seen))
        return cls(p0 + mean_p, t0 + mean_t, slope, seen[-1][0], step)

    def time_of(self, progress: float) -> float | None:
        steps = ceil((progress - self.last - ROUNDED_SECONDS) / self.step)
        observed = self.last + steps * self.step
        return self.time + self.slope * (observed - self.progress) if self.slope > 0.0 else None


@dataclass(frozen=True)
class SourcesRule:
    """How many sources there are, 0 where that is not known, and how long a silent one is waited for."""

    expected: int = 0
    idle_seconds: float = IDLE_SECONDS

    @classmethod
    def of_all(cls, rules: Sequence[SourcesRule]) -> SourcesRule:
        """The rule of a stage that reads several queues."""
        if not rules:
            return cls()
        return cls(sum(each.expected for each in rules), max(each.idle_seconds for each in rules))


ANY_SOURCES = SourcesRule()


@dataclass(frozen=True, slots=True)
class Heard:
    """What is heard of a source: rows from `least` up to `progress`."""

    source: str
    progress: float
    least: float | None = None


class Sources:
    """How far the sources of a queue have come; a source that is silent for long is not waited for.

    As many as are expected must have been seen before there is a frontier, or the silence must have passed.
    What has arrived and what the stage has taken are kept apart: a window may be closed only over rows
    that were taken. Not safe for threads.
    """

    def __init__(self, rule: SourcesRule = ANY_SOURCES) -> None:
        self._expected = rule.expected
        self._idle_seconds = rule.idle_seconds
        self._arrived: dict[str, float] = {}
        self._taken: dict[str, float] = {}
        self._waiting: dict[str, list[float]] = {}  # the least progress of each message that waits
        self._last: dict[str, float] = {}
        self._first_at = inf
        self._look_for_gone = MANY_SOURCES
        """With so many, those that have gone are looked for."""
        self._steps: list[tuple[float, float]] = []
        self._forgotten = -inf

    def arrive(
        self, source: str, progress: float, at: float, least: float | None = None, seen: float | None = None
    ) -> None:
        """Rows of a source from `least` up to `progress` came at `at`; they wait.

        `seen` is now, where they came long ago: silence counts from then. Of a source whose progress is not
        known (-inf) there is no frontier, as long as it counts.
        """
        self.arrive_together((Heard(source, progress, least),), at, seen)

    def arrive_together(self, heard: Sequence[Heard], at: float, seen: float | None = None) -> float | None:
        """The same for rows of several sources that came at once; how far all sources have come then."""
        heard_at = at if seen is None else max(at, seen)
        self._first_at = min(self._first_at, heard_at)
        for each in heard:
            if each.least is not None:
                insort(self._waiting.setdefault(each.source, []), each.least)
            self._last[each.source] = max(heard_at, self._last.get(each.source, -inf))
            self._arrived[each.source] = max(each.progress, self._arrived.get(each.source, -inf))
        frontier = self.arrived(at)
        # A source that is new, or back again, may be behind.
        while frontier is not None and self._steps and self._steps[-1][0] > frontier:
            self._steps.pop()
        if frontier is not None and (not self._steps or frontier > self._steps[-1][0]):
            self._steps.append((frontier, at))
            if len(self._steps) > MOST_STEPS:
                self._forget(MOST_STEPS // 2)
        if len(self._arrived) >= self._look_for_gone:
            self._drop_gone(frontier, heard_at)
        return frontier

    def _drop_gone(self, frontier: float | None, now: float) -> None:
        """Sources that are silent, have nothing left and are behind the others are as if never heard of."""
        reached = -inf if frontier is None else frontier
        for name in tuple(self._arrived):
            if not self._counts(name, now) and self._arrived[name] <= reached:
                del self._arrived[name]
                self._taken.pop(name, None)
                self._last.pop(name, None)
                self._waiting.pop(name, None)
        self._look_for_gone = max(2 * len(self._arrived), MANY_SOURCES)

    def take(self, source: str, progress: float, least: float | None = None) -> None:
        """The stage has taken rows of a source from `least` up to `progress`."""
        waiting = self._waiting.get(source, [])
        place = bisect_left(waiting, least) if least is not None else len(waiting)
        if place < len(waiting) and waiting[place] == least:
            del waiting[place]
        self._taken[source] = max(progress, self._taken.get(source, -inf))

    def arrived(self, now: float) -> float | None:
        """The least progress of what has arrived, over the sources that count; None while it is not known."""
        return self._least(self._arrived, now)

    def taken(self, now: float) -> float | None:
        """The same for what was taken; rows that were passed over hold it back.

        A source whose rows wait counts, however long it has been silent.
        """
        if not self._taken:
            return None
        return self._least({name: self._taken_of(name) for name in self._arrived}, now)

    def _taken_of(self, source: str) -> float:
        passed_over = self._waiting.get(source)
        taken = self._taken.get(source, -inf)
        return min(taken, passed_over[0]) if passed_over else taken

    def _least(self, known: dict[str, float], now: float) -> float | None:
        if len(self._arrived) < self._expected and now - self._first_at < self._idle_seconds:
            return None
        active = [value for name, value in known.items() if self._counts(name, now)]
        # Where all are silent, none of them is waited for.
        least = min(active) if active else max(known.values(), default=-inf)
        return None if least == -inf else least

    def _counts(self, source: str, now: float) -> bool:
        waits = self._waiting.get(source) or self._taken.get(source, -inf) < self._arrived[source]
        return bool(waits) or now - self._last[source] < self._idle_seconds

    def completed_at(self, progress: float) -> float | None:
        """When the frontier of what arrived reached `progress`; None if it has not, or is forgotten."""
        if progress <= self._forgotten:
            return None
        place = bisect_left(self._steps, (progress, -inf))
        return self._steps[place][1] if place < len(self._steps) else None

    def forget_below(self, progress: float) -> None:
        """Nobody asks any more when a frontier below `progress` was complete."""
        place = bisect_left(self._steps, (progress, -inf))
        if place > 2 * KEPT:
            self._forget(place - KEPT)

    def _forget(self, count: int) -> None:
        self._forgotten = self._steps[count - 1][0]
        del self._steps[:count]

    def wake(self, now: float) -> None:
        """No source counts as silent before now: nothing could be heard of them."""
        self._last = dict.fromkeys(self._last, now)

    def to_json(self) -> dict[str, float]:
        """What was taken of each source: enough to go on after a restart."""
        return dict(self._taken)

    def restore(self, taken: dict[str, float], now: float) -> None:
        for source, progress in taken.items():
            self._arrived[source] = self._taken[source] = progress
            self._last[source] = now
        if taken:
            self._first_at = now
