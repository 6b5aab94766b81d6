"""The same queries as a batch computation over all rows that were fed, without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from penstock.workloads.tenants.arrivals import Message, window_end
from penstock.workloads.tenants.events import ADS, CLICK, MICROS, VIEW, AdEvents
from penstock.workloads.tenants.groups import Job

TOLERANCE = 1e-6

Columns = Mapping[str, np.ndarray]
Values = dict[float, float]


def fed(job: Job, messages: Sequence[Message], base: float = 0.0) -> Iterator[Columns]:
    """The columns of every message again, in the order in which they were fed."""
    events = AdEvents(job.seed, job.events_drawn)
    for each in messages:
        table = events.rows(each.rows, base + each.begin, base + each.end, each.source)
        columns = {name: table[name].to_numpy() for name in ("ad", "kind", "revenue")}
        yield columns | {"at": table["at"].cast("int64").to_numpy()}


def expected(job: Job, messages: Sequence[Message], base: float = 0.0) -> Values:
    """What the job's query gives for each window, by the window's end in epoch seconds."""
    return BATCH[job.query](fed(job, messages, base), job)


def _sums(weights: Callable[[Columns], np.ndarray]) -> Callable[[Iterator[Columns], Job], Values]:
    """A query whose value is a sum over a window's rows."""

    def run(batches: Iterator[Columns], job: Job) -> Values:
        slide, parts = round(job.slide_seconds * MICROS), round(job.window_seconds / job.slide_seconds)
        totals: dict[int, float] = defaultdict(float)
        for columns in batches:
            slots = columns["at"] // slide
            first = int(slots[0])
            for place, total in enumerate(np.bincount(slots - first, weights(columns))):
                totals[first + place] += float(total)
        # A window is as many slides as it is long; it ends where its last slide does.
        ends = {slot + part for slot in totals for part in range(1, parts + 1)}
        return {
            window_end(end * slide): sum(totals.get(end - part, 0.0) for part in range(1, parts + 1))
            for end in sorted(ends)
        }

    return run


def _joined(batches: Iterator[Columns], job: Job) -> Values:
    """The revenue of views, once for each click on the same ad in the same window."""
    size = round(job.window_seconds * MICROS)
    views: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(ADS))
    clicks: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(ADS))
    for columns in batches:
        windows = columns["at"] // size
        for window in np.unique(windows):
            inside = windows == window
            viewed, clicked = (inside & (columns["kind"] == kind) for kind in (VIEW, CLICK))
            views[int(window)] += np.bincount(columns["ad"][viewed], columns["revenue"][viewed], ADS)
            clicks[int(window)] += np.bincount(columns["ad"][clicked], minlength=ADS)
    return {
        window_end((window + 1) * size): float(views[window] @ clicks[window]) for window in sorted(views)
    }


def _view_revenue(columns: Columns) -> np.ndarray:
    return np.where(columns["kind"] == VIEW, columns["revenue"], 0.0)


def _ones(columns: Columns) -> np.ndarray:
    return np.ones(len(columns["at"]))


BATCH: Mapping[str, Callable[[Iterator[Columns], Job], Values]] = {
    "ipq1": _sums(_view_revenue),
    "ipq2": _sums(_view_revenue),
    "ipq3": _sums(_ones),
    "ipq4": _joined,
}


def differs(value: float | None, wanted: float) -> bool:
    """Whether a result is not what it should be; sums of floats depend a little on their order.

    >>> differs(1000.0001, 1000.0), differs(1000.01, 1000.0), differs(None, 0.0)
    (False, True, True)
    """
    return value is None or not abs(value - wanted) <= TOLERANCE * max(abs(wanted), 1.0)


def wrong_values(job: Job, results: Mapping[float, float | None], wanted: Values) -> list[str]:
    """One sentence for each result that differs from the batch computation, or that it does not have."""
    return [
        f"{job.name}: the window until {end:.6f} gives {value}, and the batch computation {wanted.get(end)}"
        for end, value in sorted(results.items())
        if end not in wanted or differs(value, wanted[end])
    ]
