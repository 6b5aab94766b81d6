"""The windows of a simulated stage that have rows and no result yet."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from penstock.scheduling.contexts import transform
from penstock.simulate.inbox import Parcel
from penstock.simulate.plant import WindowSetup

MICROSECOND = 1e-6
"""Results of a window stand so much before its end, as Spark's `window_time` does."""


class OpenWindows:
    """Windows by their ends. A window closes when the frontier has come to its end, lateness included.

    >>> windows = OpenWindows(WindowSetup(size_seconds=10.0, slide_seconds=5.0))
    >>> windows.add(3.0, 6.0)
    >>> windows.close(9.0), windows.close(10.0)
    ([5.0], [10.0])
    """

    def __init__(self, setup: WindowSetup):
        self._setup = setup
        self._ends: list[float] = []
        self._open: set[float] = set()

    def take(self, parcels: Iterable[Parcel]) -> None:
        """The stage has taken these rows."""
        for parcel in parcels:
            if parcel.progress is not None and parcel.least is not None:
                self.add(parcel.least, max(parcel.progress - MICROSECOND, parcel.least))

    def add(self, least: float, most: float) -> None:
        """Rows with event times from `least` to `most`."""
        slide, size = self._setup.slide_seconds, self._setup.size_seconds
        end = transform(least, slide)
        last = transform(most, slide) + size - slide
        while end <= last + slide / 2:
            exact = transform(end - slide / 2, slide)
            if exact not in self._open:
                self._open.add(exact)
                heappush(self._ends, exact)
            end += slide

    def reopen(self, ends: Iterable[float]) -> None:
        """Those that were closed by a turn that was broken off."""
        for end in ends:
            if end not in self._open:
                self._open.add(end)
                heappush(self._ends, end)

    def close(self, frontier: float) -> list[float]:
        """The ends of those that are complete now; they are open no more."""
        closed = []
        until = frontier - self._setup.late_seconds
        while self._ends and self._ends[0] <= until + MICROSECOND / 2:
            closed.append(heappop(self._ends))
            self._open.discard(closed[-1])
        return closed
