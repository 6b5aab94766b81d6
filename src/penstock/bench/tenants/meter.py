"""What came out at a job's sink, and when; and what follows from it for one run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.workloads.tenants.arrivals import Message, completed_at, window_end
from penstock.workloads.tenants.check import differs, expected_columns, wrong_values
from penstock.workloads.tenants.groups import Job


class Turn(NamedTuple):
    """A turn that took a job's input."""

    granted_at: float
    rows: int
    slots: int
    seconds: float
    predicted_seconds: float
    """What the scheduler took it for when it was granted."""

    @property
    def ends_at(self) -> float:
        return self.granted_at + self.seconds


Counts = Sequence[tuple[float, float]]
"""(when, rows) of what was offered or done."""


class ResultMeter:
    """A sink: keeps each window's value, and when it came first."""

    final = True
    """Whether a value that came is the window's; else it is its value so far."""

    def __init__(self, clock: Callable[[], float] = time.time):
        self._clock = clock
        self._lock = threading.Lock()
        self._came: dict[float, float] = {}
        self._columns: dict[str, dict[float, float | None]] = {}

    def take(self, table: pa.Table, batch: int = 0) -> None:
        now = self._clock()
        ends = table["at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
        others = [name for name in table.column_names if name != "at"]
        with self._lock:
            for micros in ends:
                self._came.setdefault(window_end(micros), now)
            for name in others:
                known = self._columns.setdefault(name, {})
                for micros, value in zip(ends, table[name].to_pylist(), strict=True):
                    end = window_end(micros)
                    # Any value that came must be right, not only the first.
                    known[end] = value if known.get(end, value) == value else None

    @property
    def came(self) -> dict[float, float]:
        """By the window's end, when its result was there."""
        with self._lock:
            return dict(self._came)

    @property
    def values(self) -> dict[float, float | None]:
        """By the window's end, its value; None where it was null, or came twice and differed."""
        return self.column("value")

    def column(self, name: str) -> dict[float, float | None]:
        """The same of any column of the results."""
        with self._lock:
            return dict(self._columns.get(name, {}))


class RowMeter:
    """The sink of a query that does nothing: takes rows and forgets them."""

    final = True

    def __init__(self) -> None:
        self.came: dict[float, float] = {}
        self.values: dict[float, float | None] = {}

    def take(self, table: pa.Table, batch: int = 0) -> None:
        """Nothing to keep."""


def rows_between(counts: Counts, begin: float, end: float) -> float:
    """Rows after `begin`, up to `end`."""
    return sum(rows for when, rows in counts if begin < when <= end)


@dataclass(frozen=True)
class Interval:
    """The measured part of a run that began at `base`; all in epoch seconds."""

    base: float
    begin: float
    end: float

    def samples(
        self, job: Job, messages: Sequence[Message], came: Mapping[float, float]
    ) -> list[tuple[float, float, bool]]:
        """(seconds into the run, latency, missing) of each window completed in the interval.

        A result that is not there at the end counts with the time until then.
        """
        moments = completed_at(messages, job.window_seconds, job.slide_seconds, self.base)
        found = []
        for end, completed in moments.items():
            if self.begin <= completed < self.end:
                at = came.get(end, float("inf"))
                latency = max(min(at, self.end) - completed, 0.0)
                found.append((completed - self.base, latency, at > self.end))
        return found

    def job_report(
        self,
        job: Job,
        messages: Sequence[Message],
        meter: ResultMeter | RowMeter,
        offered: Counts,
        done: Counts,
    ) -> dict[str, Any]:
        """One job's figures, as JSON."""
        values, came = meter.values, meter.came
        columns = expected_columns(job, messages, self.base) if values else {}
        wanted = columns.get("value", {})
        wrong = [
            text
            for name, right in columns.items()
            if meter.final and isinstance(meter, ResultMeter)
            for text in wrong_values(job, meter.column(name), right, name)
        ]
        if not meter.final:
            # A value so far is a result as soon as it is that of the whole window.
            came = {end: at for end, at in came.items() if is_right(end, values, wanted)}
        return {
            "samples": self.samples(job, messages, came) if isinstance(meter, ResultMeter) else [],
            "offered": rows_between(offered, self.begin, self.end),
            "done": rows_between(done, self.begin, self.end),
            "done_by_second": by_second(done, self.base, self.end),
            "backlog_by_second": self.backlog(job, offered, done),
            "wrong": wrong[:3],
        }

    def backlog(self, job: Job, offered: Counts, done: Counts) -> list[float]:
        """Seconds of input that wait, at each second of the interval."""
        came, went = (np.cumsum(by_second(each, self.base, self.end)) for each in (offered, done))
        begin = int(self.begin - self.base)
        return [float(rows) / job.rows_per_second for rows in (came - went)[begin:]]


def is_right(end: float, values: Mapping[float, float | None], wanted: Mapping[float, float]) -> bool:
    """Whether a window's value is that of the batch computation."""
    return end in wanted and not differs(values[end], wanted[end])


def by_second(counts: Counts, base: float, end: float) -> list[float]:
    """Rows done in each second of a run."""
    found = [0.0] * max(int(end - base), 0)
    for when, rows in counts:
        second = int(when - base)
        if when >= base and second < len(found):
            found[second] += rows
    return found


def spread(turns: Sequence[tuple[float, float, int]]) -> list[tuple[float, float]]:
    """The rows of turns, (granted, finished, rows), spread evenly over the time they took, in 100 ms."""
    found = []
    for granted, finished, rows in turns:
        parts = max(int((finished - granted) * 10), 1)
        step = (finished - granted) / parts
        found += [(granted + (part + 1) * step, rows / parts) for part in range(parts)]
    return sorted(found)


def turns_to_result(
    completed: Mapping[float, float],
    came: Mapping[float, float],
    first: Sequence[tuple[float, float]],
    last: Sequence[tuple[float, float]] | None = None,
) -> list[int]:
    """For each result, the turns of its windowed stage from frontier to result.

    `first` are the turns, (granted, finished) by time, of the stage whose windows close, and `last` those of
    the stage that writes the result, if that is another: turns that the first one runs once the last has
    begun are not counted.
    """
    found = []
    for end, moment in completed.items():
        if end not in came:
            continue
        if last is None:
            count = sum(moment <= granted <= came[end] for granted, _ in first)
        else:
            begun = [granted for granted, _ in last if granted <= came[end]]
            until = max(begun, default=moment)
            count = sum(granted >= moment and finished <= until + 0.001 for granted, finished in first)
        if count:
            found.append(count)
    return found
