"""The rows that a pipeline under fire is fed with, and what it must have made of them at the end.

Nothing here uses Penstock or Spark: the expected result is computed in plain Python from the trace alone.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)
LATE_SECONDS = 3.0
SENSORS = 8

WindowKey = tuple[datetime, str]
WindowValue = tuple[int, int]


@dataclass(frozen=True)
class TraceSettings:
    """A row every 1/`rows_per_second` s of event time, out of order by less than LATE_SECONDS.

    `doubled` of the rows repeat an earlier one, `bad` of them do not parse.
    """

    rows: int
    rows_per_second: float
    seed: int
    doubled: float = 0.02
    bad: float = 0.005


def trace_lines(settings: TraceSettings) -> list[str]:
    """One line of JSON a row; the last one lies an hour later, which closes every other window."""
    chance = random.Random(settings.seed)
    lines: list[str] = []
    recent = max(int(settings.rows_per_second / 2), 1)
    for number in range(settings.rows - 1):
        draw = chance.random()
        if draw < settings.doubled and lines:
            lines.append(chance.choice(lines[-recent:]))
        elif draw < settings.doubled + settings.bad:
            lines.append(f"row {number} is not JSON")
        else:
            seconds = number / settings.rows_per_second + chance.uniform(0.0, 1.5)
            lines.append(_line(number, seconds, chance.randrange(SENSORS), chance.randrange(100)))
    hour = settings.rows / settings.rows_per_second + 3600
    return [*lines, _line(settings.rows - 1, hour, 0, 1)]


def _line(number: int, seconds: float, sensor: int, reading: int) -> str:
    at = START + timedelta(milliseconds=round(seconds * 1000))
    text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"id": number, "sensor": f"s{sensor}", "ts": text, "reading": reading})


@dataclass
class Outcome:
    """What lies in the sinks, or ought to: rows with how often they are there, and windows."""

    each: Counter[tuple[int, str, int]]
    unique: Counter[int]
    bad: Counter[str]
    windows: dict[WindowKey, list[WindowValue]]


def expected(lines: Iterable[str]) -> Outcome:
    """The outcome if every row arrives once; the window of the last row stays open."""
    each: Counter[tuple[int, str, int]] = Counter()
    bad: Counter[str] = Counter()
    sums: dict[WindowKey, WindowValue] = {}
    last = datetime.min.replace(tzinfo=UTC)
    for row in _rows(lines, bad):
        at = datetime.fromisoformat(row["ts"])
        each[row["id"], row["sensor"], 2 * row["reading"]] += 1
        key = (at.replace(microsecond=0), row["sensor"])
        count, total = sums.get(key, (0, 0))
        sums[key] = (count + 1, total + row["reading"])
        last = max(last, at)
    closed = last - timedelta(seconds=LATE_SECONDS + 1)
    windows = {key: [value] for key, value in sums.items() if key[0] <= closed}
    return Outcome(each, Counter({number for number, _, _ in each}), bad, windows)


def _rows(lines: Iterable[str], bad: Counter[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            bad[line] += 1


@dataclass(frozen=True)
class Comparison:
    """Rows missing and rows too many over all sinks, and windows that are not as they should be."""

    lost: int
    doubled: int
    wrong_windows: int


def compare(wanted: Outcome, got: Outcome) -> Comparison:
    """How the sinks differ from what they should hold."""
    lost = doubled = 0
    for want, have in ((wanted.each, got.each), (wanted.unique, got.unique), (wanted.bad, got.bad)):
        lost += (Counter(want) - Counter(have)).total()
        doubled += (Counter(have) - Counter(want)).total()
    wrong = 0
    for key in wanted.windows.keys() | got.windows.keys():
        want_rows, have_rows = wanted.windows.get(key, []), got.windows.get(key, [])
        wrong += want_rows != have_rows
        counted = sum(count for count, _ in have_rows) - sum(count for count, _ in want_rows)
        lost += max(-counted, 0)
        doubled += max(counted, 0)
    return Comparison(lost, doubled, wrong)
