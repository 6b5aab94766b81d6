"""Replays precomputed messages on schedule: every 100 ms what is due, job by job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from penstock.workloads.tenants.arrivals import Message
from penstock.workloads.tenants.events import AdEvents
from penstock.workloads.tenants.groups import Job

Part = tuple[int, pa.Table]
"""A source, and the rows it sends."""
Put = Callable[[str, float, Sequence[Part]], None]
"""Takes in a job's rows of one tick: the job's name, when they are due (epoch seconds), rows by source."""


class Group(NamedTuple):
    """What arrives for one job in one tick."""

    due: float
    job: str
    messages: tuple[Message, ...]


def groups_of(schedules: Mapping[str, Sequence[Message]]) -> list[Group]:
    """The messages of all jobs by tick and job; each job's must be in order, and due at the ends of ticks."""
    found = []
    for job, messages in schedules.items():
        for due, own in groupby(messages, key=lambda each: each.due):
            found.append(Group(due, job, tuple(own)))
    return sorted(found, key=lambda group: group.due)


class Feeder:
    """A thread that hands rows over when they are due.

    Rows count as arrived when they are due, also where whoever takes them in is slow; `lag_seconds` says how
    slow at most.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        schedules: Mapping[str, Sequence[Message]],
        put: Put,
        clock: Callable[[], float] = time.time,
    ):
        self._groups = groups_of(schedules)
        self._events = {job.name: AdEvents(job.seed, job.events_drawn, payload=job.payload) for job in jobs}
        self._put = put
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self.base = 0.0
        self.lag_seconds = 0.0
        self.offered: dict[str, list[tuple[float, int]]] = {job.name: [] for job in jobs}
        """By job: when rows were due, and how many."""
        self.fed: dict[str, list[tuple[float, int, float]]] = {job.name: [] for job in jobs}
        """By job, of each message: when it was due, its source, and when it was begun to be handed over."""
        self.error: BaseException | None = None

    def start(self, base: float) -> None:
        """Begins; `base`, in epoch seconds, is second 0 of the messages."""
        self.base = base
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        try:
            for group in self._groups:
                due = self.base + group.due
                self._stopping.wait(max(due - self._clock(), 0.0))
                if self._stopping.is_set():
                    return
                self._feed(group, due)
        except BaseException as error:
            self.error = error

    def _feed(self, group: Group, due: float) -> None:
        events = self._events[group.job]
        parts = [
            (each.source, events.rows(each.rows, self.base + each.begin, self.base + each.end, each.source))
            for each in group.messages
        ]
        begun = self._clock()
        self._put(group.job, due, parts)
        # Parts are taken in one after the other.
        step = (self._clock() - begun) / len(parts)
        self.fed[group.job] += [
            (each.due, each.source, begun + place * step - self.base)
            for place, each in enumerate(group.messages)
        ]
        self.offered[group.job].append((due, sum(each.rows for each in group.messages)))
        self.lag_seconds = max(self.lag_seconds, self._clock() - due)
