"""What arrives for a job, and when: precomputed, so that every side is fed the very same messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.workloads.tenants.events import MICROS, last_micros
from penstock.workloads.tenants.groups import Job

PARETO_ALPHA = 1.5
SKEW = 200.0
BURST_PERIODS, BURST_ON, BURST_QUIET = 10, 2, 0.1
TICK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Message:
    """Rows of one source that arrive together. All times are seconds since the run began.

    Its events lie evenly in [begin, end), and it is due at `end` or a little later.
    """

    due: float
    source: int
    rows: int
    begin: float
    end: float


Volumes = Callable[[Job, int, np.random.Generator], np.ndarray]
"""Rows of each message by (period, source), as fractions of rows; all of a job's rows together."""


def constant(job: Job, periods: int, chance: np.random.Generator) -> np.ndarray:
    """Every message alike."""
    return np.full((periods, job.sources), _mean_rows(job))


def pareto(job: Job, periods: int, chance: np.random.Generator) -> np.ndarray:
    """The volume of each period from a Pareto distribution, alpha 1.5; the mean is kept."""
    drawn = 1.0 + chance.pareto(PARETO_ALPHA, periods)
    return _scaled(job, periods, (drawn / drawn.mean())[:, None])


def skewed(job: Job, periods: int, chance: np.random.Generator) -> np.ndarray:
    """One source has 200 times the rows of each other one; the total is kept."""
    weights = np.ones(job.sources)
    weights[int(chance.integers(job.sources))] = SKEW
    return _scaled(job, periods, (weights / weights.mean())[None, :])


def bursts(job: Job, periods: int, chance: np.random.Generator) -> np.ndarray:
    """On for 2 of 10 periods, and a tenth of the mean in between; the mean of ten periods is kept."""
    first = int(chance.integers(BURST_PERIODS))
    loud = (BURST_PERIODS - BURST_QUIET * (BURST_PERIODS - BURST_ON)) / BURST_ON
    on = (np.arange(periods) + first) % BURST_PERIODS < BURST_ON
    return _scaled(job, periods, np.where(on, loud, BURST_QUIET)[:, None])


ARRIVALS: Mapping[str, Volumes] = {
    "constant": constant,
    "pareto": pareto,
    "skewed": skewed,
    "bursts": bursts,
}


def _mean_rows(job: Job) -> float:
    return job.rows_per_second * job.message_seconds / job.sources


def _scaled(job: Job, periods: int, factors: np.ndarray) -> np.ndarray:
    rows: np.ndarray = np.broadcast_to(factors, (periods, job.sources)) * _mean_rows(job)
    return rows


def messages_of(job: Job, seconds: float) -> list[Message]:
    """All messages of a job that are due within the first `seconds` of a run, by time.

    Sources send one after the other, spread over the period; each message covers its source's event time
    from the last one on. There is a row in every message, so that progress never stands still.
    """
    periods = math.ceil((seconds - job.starts_at) / job.message_seconds) if seconds > job.starts_at else 0
    volumes = ARRIVALS[job.arrivals](job, periods, np.random.default_rng(job.seed))
    # Fractions of rows are carried on, so that no rounding changes a source's total.
    edges = np.floor(np.cumsum(volumes, axis=0) + 1e-6)
    counts = np.maximum(np.diff(edges, axis=0, prepend=0.0), 1).astype(int)
    found = []
    for period in range(periods):
        for source in range(job.sources):
            due = job.starts_at + (period + (source + 0.5) / job.sources) * job.message_seconds
            if due <= seconds:
                rows = int(counts[period, source])
                found.append(Message(due, source, rows, due - job.message_seconds, due))
    return found


def in_ticks(messages: Sequence[Message], tick_seconds: float = TICK_SECONDS) -> list[Message]:
    """The same messages, each due at the end of its tick: what arrives in one tick arrives together.

    >>> [round(each.due, 3) for each in in_ticks([Message(0.31, 0, 5, -0.69, 0.31)])]
    [0.4]
    """
    return [replace(each, due=math.ceil(each.due / tick_seconds - 1e-9) * tick_seconds) for each in messages]


def window_end(end_micros: int) -> float:
    """The key of a window: its end in epoch seconds; the same float from everywhere."""
    return end_micros / MICROS


def completed_at(
    messages: Sequence[Message], window_seconds: float, slide_seconds: float, base: float = 0.0
) -> dict[float, float]:
    """For every window, by its end, the moment at which its frontier was complete.

    That is when the last of the sources has sent a message whose last event reaches the window's end.
    `base` is when the run began, in epoch seconds; so are the times given back.
    """
    slide = round(slide_seconds * MICROS)
    reached: dict[int, list[tuple[int, float]]] = {}
    for each in sorted(messages, key=lambda message: message.due):
        last = last_micros(each.rows, base + each.begin, base + each.end)
        reached.setdefault(each.source, []).append((last, base + each.due))
    if not reached:
        return {}
    first = round((base + min(each.begin for each in messages)) * MICROS)
    least = min(steps[-1][0] for steps in reached.values())
    ends = range((first // slide + 1) * slide, least + 1, slide)
    moments = [_moments(steps, ends) for steps in reached.values()]
    return {window_end(end): max(at) for end, at in zip(ends, zip(*moments, strict=True), strict=True)}


def _moments(steps: Sequence[tuple[int, float]], ends: range) -> list[float]:
    """When a source reached each of the ends; it reaches all of them."""
    found, place = [], 0
    for end in ends:
        while steps[place][0] < end:
            place += 1
        found.append(steps[place][1])
    return found
