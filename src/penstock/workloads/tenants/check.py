"""The same queries as a batch computation over all rows that were fed, without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from penstock.workloads.tenants.arrivals import Message, window_end
from penstock.workloads.tenants.events import ADS, ADS_PER_CAMPAIGN, CLICK, MICROS, VIEW, AdEvents
from penstock.workloads.tenants.groups import Job

TOLERANCE = 1e-6
KINDS, CAMPAIGNS = 3, ADS // ADS_PER_CAMPAIGN

Columns = Mapping[str, np.ndarray]
Values = dict[float, float]
Results = dict[str, Values]
"""By column, then by the window's end."""


def fed(job: Job, messages: Sequence[Message], base: float = 0.0) -> Iterator[Columns]:
    """The columns of every message again, in the order in which they were fed."""
    events = AdEvents(job.seed, job.events_drawn)
    for each in messages:
        table = events.rows(each.rows, base + each.begin, base + each.end, each.source)
        columns = {name: table[name].to_numpy() for name in ("ad", "kind", "revenue")}
        yield columns | {"at": table["at"].cast("int64").to_numpy()}


def expected(job: Job, messages: Sequence[Message], base: float = 0.0) -> Values:
    """The `value` that the job's query gives for each window, by the window's end in epoch seconds."""
    return expected_columns(job, messages, base)["value"]


def expected_columns(job: Job, messages: Sequence[Message], base: float = 0.0) -> Results:
    """The same of each column that the query gives, by its name."""
    return BATCH[job.query](fed(job, messages, base), job)


def _revenue(batches: Iterator[Columns], job: Job) -> Results:
    """The revenue of a window's views."""
    totals: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(1))
    for columns in batches:
        slots, first = _slots(columns, job)
        weights = np.where(columns["kind"] == VIEW, columns["revenue"], 0.0)
        for place, total in enumerate(np.bincount(slots, weights)):
            totals[first + place] += total
    return {"value": {end: float(total.sum()) for end, total in _windows(totals, job)}}


def _counts(batches: Iterator[Columns], job: Job) -> Results:
    """All events of a window, and the campaigns with any view among them."""
    totals: dict[int, np.ndarray] = defaultdict(lambda: np.zeros((KINDS, CAMPAIGNS)))
    for columns in batches:
        slots, first = _slots(columns, job)
        cells = (slots * KINDS + columns["kind"]) * CAMPAIGNS + columns["ad"] // ADS_PER_CAMPAIGN
        size = (int(slots[-1]) + 1) * KINDS * CAMPAIGNS
        for place, counts in enumerate(np.bincount(cells, minlength=size).reshape(-1, KINDS, CAMPAIGNS)):
            totals[first + place] += counts
    windows = dict(_windows(totals, job))
    return {
        "value": {end: float(counts.sum()) for end, counts in windows.items()},
        "campaigns": {end: float(np.count_nonzero(counts[VIEW])) for end, counts in windows.items()},
    }


def _slots(columns: Columns, job: Job) -> tuple[np.ndarray, int]:
    """The slide of each row, counted from that of the first, and which that is; times ascend."""
    slots = columns["at"] // round(job.slide_seconds * MICROS)
    first = int(slots[0])
    return slots - first, first


def _windows(totals: Mapping[int, np.ndarray], job: Job) -> Iterator[tuple[float, np.ndarray]]:
    """A window is as many slides as it is long; it ends where its last slide does."""
    slide, parts = round(job.slide_seconds * MICROS), round(job.window_seconds / job.slide_seconds)
    for end in sorted({slot + part for slot in totals for part in range(1, parts + 1)}):
        inside = [totals[end - part] for part in range(1, parts + 1) if end - part in totals]
        yield window_end(end * slide), np.sum(inside, axis=0)


def _joined(batches: Iterator[Columns], job: Job) -> Results:
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
    pairs = {
        window_end((window + 1) * size): float(views[window] @ clicks[window]) for window in sorted(views)
    }
    return {"value": pairs}


BATCH: Mapping[str, Callable[[Iterator[Columns], Job], Results]] = {
    "ipq1": _revenue,
    "ipq2": _revenue,
    "ipq3": _counts,
    "ipq4": _joined,
}


def differs(value: float | None, wanted: float) -> bool:
    """Whether a result is not what it should be; sums of floats depend a little on their order.

    >>> differs(1000.0001, 1000.0), differs(1000.01, 1000.0), differs(None, 0.0)
    (False, True, True)
    """
    return value is None or not abs(value - wanted) <= TOLERANCE * max(abs(wanted), 1.0)


def wrong_values(
    job: Job, results: Mapping[float, float | None], wanted: Values, column: str = "value"
) -> list[str]:
    """One sentence for each result that differs from the batch computation, or that it does not have."""
    return [
        f"{job.name}: the window until {end:.6f} gives {column} {value}, and the batch computation "
        f"{wanted.get(end)}"
        for end, value in sorted(results.items())
        if end not in wanted or differs(value, wanted[end])
    ]
