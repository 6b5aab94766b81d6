"""Rows that come from outside, as the simulation goes on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
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
            self._parcel(Rows((time,), (count,), int(count)), time)
            for time, count in zip(times, rows, strict=True)
        ]

    def _parcel(self, rows: Rows, time: float) -> Parcel:
        if not self._timed:
            return Parcel(rows, time, self._source)
        progress = next(self._events, time - self._lag)
        least = progress if self._least is None else self._least
        self._least = progress
        return Parcel(rows, time, self._source, progress, least)
