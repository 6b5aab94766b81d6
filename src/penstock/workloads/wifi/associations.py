"""What arrives: associations of subjects with access points, as ticks of rows, generated or from the trace.

Both are whole busy days of the trace's kind, as many as have the rows for the rate and time asked for.
They are thinned to just that number of rows and compressed to that time: bursts keep their shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.workloads.wifi.campus import Campus
from penstock.workloads.wifi.crowd import DAY_SECONDS, Crowd, Drawn
from penstock.workloads.wifi.trace import TRACE, busy_days, cloned, trace_file

SCHEMA = "subject STRING, mac STRING, ap STRING, at TIMESTAMP"
ARROW = pa.schema(
    [
        ("subject", pa.string()),
        ("mac", pa.string()),
        ("ap", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
TICK_SECONDS = 0.1
BEGIN = datetime(2020, 1, 6, 9, 0, tzinfo=UTC)
CAMPUS = Campus()
WEDNESDAY = 2
"""The trace's day with the sharpest burst, counted from its Monday."""
_MICROS, _TICK_MICROS = 1_000_000, 100_000

Arrival = tuple[float, pa.Table]
"""Seconds from the start at which the rows are there, and the rows, by event time."""


def generate(
    rows_per_second: float,
    seconds: float,
    *,
    seed: int = 1,
    campus: Campus = CAMPUS,
    crowd: Crowd | None = None,
    begin: datetime = BEGIN,
) -> list[Arrival]:
    """Arrivals of so many seconds at this mean rate, the same for the same seed.

    Event time `at` runs from `begin`, strictly upwards; rows arrive at the end of their tick of 100 ms,
    and a tick without rows is left out.
    """
    model = crowd or Crowd()

    def day(number: int) -> Drawn:
        return model.day(campus, np.random.default_rng([seed, number]))

    return _in_ticks(day, rows_per_second, seconds, campus, begin)


def replay(
    rows_per_second: float,
    seconds: float,
    *,
    seed: int = 1,
    campus: Campus = CAMPUS,
    path: str | Path | None = None,
    first_day: int = WEDNESDAY,
    begin: datetime = BEGIN,
) -> list[Arrival]:
    """The same from the real trace, its people cloned to as many subjects as the campus has."""
    found = Path(path) if path is not None else trace_file()
    if found is None:
        raise PenstockError(
            f"a replay must have the trace, got no {TRACE}: set PENSTOCK_DATA to the folder that holds it, "
            "or generate associations"
        )
    days = busy_days(found)

    def day(number: int) -> Drawn:
        real = days[(number + first_day) % len(days)]
        return cloned(real, campus, np.random.default_rng([seed, number]))

    return _in_ticks(day, rows_per_second, seconds, campus, begin)


def _in_ticks(
    day: Callable[[int], Drawn], rows_per_second: float, seconds: float, campus: Campus, begin: datetime
) -> list[Arrival]:
    rows = round(rows_per_second * seconds)
    if rows < 1:
        raise PenstockError(
            "associations must come at a rate and for a time that give a row or more, "
            f"got {rows_per_second:g} rows/s for {seconds:g} s: nothing would arrive"
        )
    drawn, days = _thinned(day, rows)
    micros = compressed_micros(drawn.seconds, days * DAY_SECONDS, seconds)
    table = _table(drawn, micros, campus, begin)
    ticks = micros // _TICK_MICROS
    edges = [0, *(np.flatnonzero(np.diff(ticks)) + 1).tolist(), rows]
    return [
        ((int(ticks[first]) + 1) * _TICK_MICROS / _MICROS, table.slice(first, end - first))
        for first, end in pairwise(edges)
    ]


def _thinned(day: Callable[[int], Drawn], rows: int) -> tuple[Drawn, int]:
    """So many rows, taken evenly by chance from as few days as have them, and the number of days."""
    days: list[Drawn] = []
    while sum(map(len, days)) < rows:
        days.append(day(len(days)))
    seconds = np.concatenate([each.seconds + number * DAY_SECONDS for number, each in enumerate(days)])
    subjects = np.concatenate([each.subjects for each in days])
    points = np.concatenate([each.access_points for each in days])
    kept = np.sort(np.random.default_rng(rows).choice(len(seconds), rows, replace=False))
    return Drawn(seconds[kept], subjects[kept], points[kept]), len(days)


def compressed_micros(drawn_seconds: np.ndarray, span: float, seconds: float) -> np.ndarray:
    """Ascending moments of [0, span) as microseconds of [0, seconds), no two the same.

    >>> compressed_micros(np.array([0.0, 50.0, 50.0, 99.9]), 100.0, 1.0).tolist()
    [0, 499999, 500000, 998999]
    """
    # Each has a microsecond more than the one before: that room is kept aside at the end.
    room = max(round(seconds * _MICROS) - len(drawn_seconds), 0)
    scaled: np.ndarray = np.floor(drawn_seconds / span * room).astype(np.int64)
    return scaled + np.arange(len(drawn_seconds))


def _table(drawn: Drawn, micros: np.ndarray, campus: Campus, begin: datetime) -> pa.Table:
    first = round(begin.timestamp() * _MICROS)
    columns = [
        pa.array(campus.subject_names).take(pa.array(drawn.subjects)),
        pa.array(campus.macs).take(pa.array(drawn.subjects)),
        pa.array(campus.access_point_names).take(pa.array(drawn.access_points)),
        pa.array(micros + first).cast(ARROW.field("at").type),
    ]
    return pa.table(columns, schema=ARROW)


def seconds_of(arrivals: list[Arrival], begin: datetime = BEGIN) -> np.ndarray:
    """The event times of all rows, in seconds from the start: what burstiness is measured on."""
    return np.concatenate(list(_moments(arrivals))) - begin.timestamp()


def _moments(arrivals: list[Arrival]) -> Iterator[np.ndarray]:
    for _, table in arrivals:
        yield table["at"].cast("int64").to_numpy() / _MICROS
