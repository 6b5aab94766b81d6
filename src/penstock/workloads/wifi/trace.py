"""The real trace, SmartSPEC's Wi-Fi associations: its busy hours, and clones of its people."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import numpy as np

from penstock.workloads.wifi.campus import Campus
from penstock.workloads.wifi.crowd import DAY_SECONDS, Drawn

TRACE = "smartspec/generation_demo_obs_msid_1.csv"
BUSY_FROM_SECONDS = 3 * 3600
JITTER_SECONDS = 5.0
_MONDAY, _DAYS, _SECONDS_A_DAY = datetime(2020, 1, 6), 5, 86_400


def trace_file() -> Path | None:
    """Where the real trace lies: in `PENSTOCK_DATA`, else in shared/data beside the project, or nowhere."""
    chosen = os.environ.get("PENSTOCK_DATA")
    root = Path(__file__).resolve().parents[4]
    folder = Path(chosen) if chosen else root.parent / "shared" / "data"
    return folder / TRACE if (folder / TRACE).is_file() else None


def busy_days(path: str | Path) -> list[Drawn]:
    """Each day's rows from 03:00 to 09:00, by time, people and access points numbered from 0.

    Rows outside of the trace's week are left out: six of them have absurd dates.
    """
    persons, seconds, points = _columns(Path(path))
    day, moment = np.divmod(seconds, _SECONDS_A_DAY)
    since = moment - BUSY_FROM_SECONDS
    busy = (since >= 0) & (since < DAY_SECONDS)
    found = []
    for number in range(_DAYS):
        mine = np.flatnonzero((day == number) & busy)
        mine = mine[np.argsort(since[mine], kind="stable")]
        found.append(Drawn(since[mine], persons[mine], points[mine]))
    return found


def _columns(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from pyarrow import csv

    table = csv.read_csv(path)
    times = table["DateTime"].to_numpy().astype("datetime64[s]")
    seconds = (times - np.datetime64(_MONDAY, "s")).astype(np.float64)
    persons = np.unique(table["PersonID"].to_numpy(), return_inverse=True)[1]
    points = np.unique(table["WiFiAP"].to_numpy(), return_inverse=True)[1]
    return persons, seconds, points


def cloned(day: Drawn, campus: Campus, chance: np.random.Generator) -> Drawn:
    """The same day with as many subjects as the campus has: clones do as their original, seconds apart.

    Each access point of the trace stands for a part of the campus's buildings, by its share of rows, and
    every clone has an access point of his own in each part.
    """
    persons = int(day.subjects.max()) + 1
    clones = -(-campus.subjects // persons)
    subjects = (day.subjects[:, None] + persons * np.arange(clones)).ravel()
    jitter = chance.normal(0.0, JITTER_SECONDS, len(subjects)) + chance.random(len(subjects))
    seconds = np.clip(np.repeat(day.seconds, clones) + jitter, 0.0, DAY_SECONDS - 1e-6)
    points = _spread(campus, subjects, np.repeat(day.access_points, clones))
    order = np.argsort(seconds, kind="stable")
    kept = order[subjects[order] < campus.subjects]
    return Drawn(seconds[kept], subjects[kept], points[kept])


def _spread(campus: Campus, subjects: np.ndarray, points: np.ndarray) -> np.ndarray:
    rows = np.bincount(points)
    # At least one access point each; what is left goes by share.
    spare = max(campus.access_points - len(rows), 0)
    sizes = 1 + (rows * spare) // rows.sum()
    begins = np.cumsum(sizes) - sizes
    # A large odd factor, so that neighbours in number do not sit together.
    own = (subjects * 2_654_435_761) % 2**32
    found: np.ndarray = np.minimum(begins[points] + own % sizes[points], campus.access_points - 1)
    return found
