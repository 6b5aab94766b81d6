"""Rows that come from outside, as the simulation goes on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf

import numpy as np

from penstock.simulate.inbox import Messages, Parcel
from penstock.simulate.plant import Inflow
from penstock.simulate.rows import Rows
from penstock.simulate.station import Station


class Feed:
    """One inflow: knows when the next rows come, and puts them into the queues of its readers."""

    def __init__(
        self,
        inflow: Inflow,
        stations: Sequence[Station],
        chance: np.random.Generator,
        end: float,
        timed: bool,
    ):
        self.stations = tuple(stations)
        self._source = f"{inflow.queue}|{inflow.producer}"
        self._lag = inflow.lag_seconds
        self._events = iter(inflow.events)
        self._late = iter(inflow.late)
        self._timed = timed
        self._least: float | None = None
        self._blocks = inflow.arrivals.blocks(chance, 0.0, end)
        self._times: Sequence[float] = ()
        self._rows: Sequence[float] = ()
        self._place = 0
        self.next_at = inf
        """When the next rows come; inf after the last."""
        self.asleep = False
        """Nobody is told when rows come: whoever wants them asks."""
        self._refill()

    def _refill(self) -> None:
        while self._place >= len(self._times):
            block = next(self._blocks, None)
            if block is None:
                self._times, self._rows, self._place = (), (), 0
                self.next_at = inf
                return
            self._times, self._rows = block
            self._place = 0
        self.next_at = self._times[self._place]

    def come(self, until: float) -> int:
        """All that comes up to then is in the queues; how many segments those are."""
        came = 0
        while self.next_at <= until:
            came += self._come(until)
        return came

    def _come(self, until: float) -> int:
        begin = self._place
        end = bisect_right(self._times, until, begin)
        times, rows = self._times[begin:end], self._rows[begin:end]
        whole: Parcel | None = None
        singly: list[Parcel] | None = None
        for station in self.stations:
            if isinstance(station.inbox, Messages):
                singly = self._parcels(times, rows) if singly is None else singly
                for parcel in singly:
                    station.inbox.put(parcel)
            else:
                whole = whole or Parcel(Rows(times, rows), times[0], self._source)
                station.inbox.put(whole)
        self._place = end
        self._refill()
        return end - begin

    def _parcels(self, times: Sequence[float], rows: Sequence[float]) -> list[Parcel]:
        return [
            self._parcel(Rows((time - next(self._late, 0.0),), (count,), int(count)), time)
            for time, count in zip(times, rows, strict=True)
        ]

    def _parcel(self, rows: Rows, time: float) -> Parcel:
        if not self._timed:
            return Parcel(rows, time, self._source)
        progress = next(self._events, time - self._lag)
        least = progress if self._least is None else self._least
        self._least = progress
        return Parcel(rows, time, self._source, progress, least)


class Supply:
    """All inflows, by when their next rows come. `segments` counts what has come so far.

    Each stage that rows come to is told by `touch`, but not where nobody could act on them: while it is in a
    turn they matter at its end. With `lazy`, where the order of stages does not hang on how many rows wait,
    those of a stage that waits matter when it is first in line. Whoever wants them then must `catch_up`.
    """

    def __init__(self, lazy: bool, touch: Callable[[Station], None]):
        self.segments = 0
        self._lazy = lazy
        self._touch = touch
        self._feeds: list[Feed] = []
        self._of: dict[str, list[int]] = {}
        self._coming: list[tuple[float, int]] = []

    def add(self, feed: Feed) -> None:
        for station in feed.stations:
            self._of.setdefault(station.name, []).append(len(self._feeds))
        self._feeds.append(feed)
        self._await(len(self._feeds) - 1)

    @property
    def next_at(self) -> float:
        """When rows come that somebody must know of; inf if none do."""
        return self._coming[0][0] if self._coming else inf

    def come(self, now: float) -> None:
        """The rows of the next inflow come, or are left to come unseen."""
        _, number = heappop(self._coming)
        feed = self._feeds[number]
        if all(self._sleeps(station) for station in feed.stations):
            feed.asleep = True
            return
        self._fetch(feed, now)
        self._await(number)

    def catch_up(self, station: Station, now: float) -> None:
        """Takes in what has come to the stage unseen."""
        for number in self._of.get(station.name, ()):
            if self._feeds[number].asleep:
                self._fetch(self._feeds[number], now)

    def watch(self, station: Station) -> None:
        """The next rows for the stage are told of."""
        for number in self._of.get(station.name, ()):
            if self._feeds[number].asleep:
                self._await(number)

    def _sleeps(self, station: Station) -> bool:
        return not station.is_idle or (self._lazy and station.waits_as != "")

    def _await(self, number: int) -> None:
        feed = self._feeds[number]
        feed.asleep = False
        if feed.next_at < inf:
            heappush(self._coming, (feed.next_at, number))

    def _fetch(self, feed: Feed, now: float) -> None:
        came = feed.come(now)
        if came:
            self.segments += came
            for station in feed.stations:
                self._touch(station)
