"""What waits at a simulated stage: runs of rows in order, or messages in a line where order matters."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Protocol

from penstock.scheduling.contexts import PATIENT_SECONDS, Message, PriorityContext, Target
from penstock.scheduling.line import Line
from penstock.scheduling.outlook import order
from penstock.scheduling.policies import ContextPolicy
from penstock.scheduling.progress import Heard, Sources, SourcesRule
from penstock.simulate.plant import StageSetup
from penstock.simulate.rows import NO_ROWS, Rows, joined


@dataclass(slots=True)
class Parcel:
    """Rows on their way to a queue, with what goes along.

    `progress` is how far event time has come with them, `least` that of their first row; None where no
    window comes after.
    """

    rows: Rows
    published: float
    source: str = ""
    progress: float | None = None
    least: float | None = None
    context: PriorityContext | None = None


@dataclass(slots=True)
class Taken:
    """The rows of a turn; `parcels` say how to give them back."""

    rows: Rows
    parcels: list[Parcel]
    context: PriorityContext | None = None


class Inbox(Protocol):
    """The queues of one stage, as one."""

    rows_waiting: int
    rows_offered: int

    @property
    def ready_since(self) -> float: ...

    @property
    def oldest_arrival(self) -> float: ...

    def put(self, parcel: Parcel) -> None: ...

    def take(self, count: int, now: float) -> Taken: ...

    def give_back(self, taken: Taken) -> None: ...


class Runs:
    """Rows in the order in which they came; for policies that ask no more."""

    def __init__(self) -> None:
        self.rows_waiting = 0
        self.rows_offered = 0
        self._parcels: deque[Parcel] = deque()

    @property
    def ready_since(self) -> float:
        return self._parcels[0].published

    @property
    def oldest_arrival(self) -> float:
        return self._parcels[0].rows.times[0]

    def put(self, parcel: Parcel) -> None:
        self._parcels.append(parcel)
        self.rows_waiting += parcel.rows.count
        self.rows_offered += parcel.rows.count

    def take(self, count: int, now: float) -> Taken:
        parcels, left = [], min(count, self.rows_waiting)
        self.rows_waiting -= left
        while left > 0:
            parcel = self._parcels[0]
            if parcel.rows.count <= left:
                parcels.append(self._parcels.popleft())
                left -= parcel.rows.count
            else:
                first, rest = parcel.rows.cut(left)
                parcels.append(Parcel(first, parcel.published))
                # Rows from outside are published as they arrive, one after the other.
                self._parcels[0] = Parcel(rest, max(parcel.published, rest.times[0]))
                left = 0
        return Taken(joined([each.rows for each in parcels]) if parcels else NO_ROWS, parcels)

    def give_back(self, taken: Taken) -> None:
        """These rows wait again, before all others."""
        self._parcels.extendleft(reversed(taken.parcels))
        self.rows_waiting += taken.rows.count


class Messages:
    """Rows as the messages of a `Line`, with their contexts and the progress of their sources.

    As in an engine, a stage without a window keeps progress beside its line, and one with a window takes
    whole messages, as many as there is room for in a turn and one at least.
    """

    def __init__(self, setup: StageSetup, policy: ContextPolicy, producers: int):
        window = setup.window
        rule = SourcesRule(max(producers, 1))
        target = Target(
            setup.name,
            setup.tenant or setup.pipeline,
            setup.latency_seconds or PATIENT_SECONDS,
            window.slide_seconds if window is not None else None,
            share=setup.share,
        )
        span = window.span if window is not None else None
        self.rows_waiting = 0
        self.rows_offered = 0
        self.sources = Sources(rule)
        self.line = Line(policy, target, window=span, sources=self.sources if window is not None else None)
        self._windowed = window is not None
        self._parcels: dict[int, Parcel] = {}
        self._count = 0

    @property
    def ready_since(self) -> float:
        return next(iter(self._parcels.values())).published

    @property
    def oldest_arrival(self) -> float:
        return next(iter(self._parcels.values())).rows.times[0]

    def put(self, parcel: Parcel) -> None:
        self.rows_offered += parcel.rows.count
        self._put(parcel)

    def _put(self, parcel: Parcel) -> None:
        self._count += 1
        self._parcels[self._count] = parcel
        self.rows_waiting += parcel.rows.count
        time = parcel.rows.times[0]
        progress = parcel.progress
        if progress is not None and not self._windowed:
            self.sources.arrive(parcel.source, progress, time, parcel.least, parcel.published)
            progress = None
        heard = (
            () if progress is None or progress == -inf else (Heard(parcel.source, progress, parcel.least),)
        )
        message = Message(str(self._count), parcel.rows.count, time, heard, seen=parcel.published)
        self.line.arrive(self._count, message, parcel.context)

    def take(self, count: int, now: float) -> Taken:
        left = min(count, self.rows_waiting)
        parcels: list[Parcel] = []
        first: PriorityContext | None = None
        for key in self._in_order(left):
            if left <= 0:
                break
            parcel = self._parcels[key]
            if self._windowed and parcels and parcel.rows.count > left:
                break
            context = self.line.take(key, min(parcel.rows.count, left))
            parcel, left = self._taken_of(key, parcel, left)
            parcels.append(parcel)
            if context is not None and (first is None or order(context) < order(first)):
                first = context
        return Taken(joined([each.rows for each in parcels]) if parcels else NO_ROWS, parcels, first)

    def _in_order(self, count: int) -> list[int]:
        keys = list(self._parcels)
        return keys if count >= self.rows_waiting else sorted(keys, key=self.line.place_of)

    def _taken_of(self, key: int, parcel: Parcel, left: int) -> tuple[Parcel, int]:
        """What is taken of a message, and how many rows are still to be taken."""
        whole = parcel.rows.count
        if whole <= left or self._windowed:
            if whole > left:
                self.line.take(key, whole - left)
            del self._parcels[key]
            if parcel.progress is not None and not self._windowed:
                self.sources.take(parcel.source, parcel.progress, parcel.least)
            self.rows_waiting -= whole
            return parcel, left - whole
        first, rest = parcel.rows.cut(left)
        self._parcels[key] = _part(parcel, rest)
        self.rows_waiting -= left
        return _part(parcel, first), 0

    def give_back(self, taken: Taken) -> None:
        """These rows wait again, as messages of their own."""
        for parcel in taken.parcels:
            self._put(parcel)


def _part(parcel: Parcel, rows: Rows) -> Parcel:
    return Parcel(rows, parcel.published, parcel.source, parcel.progress, parcel.least, parcel.context)
