"""What RIoTBench's operators compute, in plain Python, written from their definitions and not from the SQL.

Rows are dictionaries; those of an operator with state come in the order that they are to be taken in.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
QUANTITIES = ("temperature", "humidity", "light", "dust", "airquality_raw")
RANGES = {
    "temperature": (0.7, 35.1),
    "humidity": (20.3, 69.1),
    "light": (0, 5153),
    "dust": (83.36, 3322.67),
    "airquality_raw": (12, 49),
}


def wide(msgid: int, line: str) -> Row:
    """A good line, as PRED's parser gives it."""
    senml = json.loads(line.split(",", 1)[1])
    fields = {each["n"]: each["sv"] if each["n"] == "source" else float(each["v"]) for each in senml["e"]}
    sensor = fields.pop("source")
    return {"msgid": msgid, "time": int(senml["bt"]), "sensor": sensor, **fields}


def observations(row: Row, *, with_source: bool = True) -> list[Row]:
    """The six observations of a wide row (five without the source)."""
    meta = {name: row[name] for name in ("msgid", "time", "longitude", "latitude", "sensor")}
    found = [{**meta, "name": name, "value": row[name], "text": None} for name in QUANTITIES]
    source = {**meta, "name": "source", "value": None, "text": row["sensor"]}
    return [source, *found] if with_source else found


def in_range(row: Row) -> Row:
    low, high = RANGES.get(row["name"], (-math.inf, math.inf))
    value = row["value"]
    return {**row, "value": value if value is not None and low <= value <= high else None}


def interpolated(rows: Iterable[Row]) -> list[Row]:
    history: dict[tuple[str, str], list[float]] = defaultdict(list)
    found = []
    for row in rows:
        last = history[row["sensor"], row["name"]]
        value = row["value"]
        if row["name"] != "source" and value is None:
            value = sum(last[-5:]) / len(last[-5:]) if last else 0.0
        elif value is not None:
            last.append(value)
        found.append({**row, "value": value})
    return found


def joined(rows: Iterable[Row]) -> list[Row]:
    waiting: dict[tuple[Any, ...], dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    found = []
    for row in rows:
        parts = waiting[row["msgid"], row["time"], row["sensor"]]
        parts[row["name"]].append(row["text"] if row["name"] == "source" else row["value"])
        if all(parts[name] for name in ("source", *QUANTITIES)):
            meta = {name: row[name] for name in ("msgid", "time", "longitude", "latitude", "sensor")}
            found.append({**meta, **{name: parts[name].pop(0) for name in ("source", *QUANTITIES)}})
    return found


def kalman(rows: Iterable[Row], column: str = "value") -> list[Row]:
    states: dict[tuple[str, str], tuple[float, float]] = {}
    found = []
    for row in rows:
        x, p = states.get((row["sensor"], row["name"]), (0.0, 30.0))
        z = row[column]
        if z is not None:
            p = p + 0.125
            gain = p / (p + 0.32)
            x, p = x + gain * (z - x), (1 - gain) * p
        states[row["sensor"], row["name"]] = (x, p)
        found.append({**row, "value": x})
    return found


def trends(rows: Iterable[Row]) -> list[Row]:
    series: dict[tuple[str, str], list[float]] = defaultdict(list)
    found = []
    for row in rows:
        if row["value"] is None:
            continue
        values = series[row["sensor"], row["name"]]
        values.append(row["value"])
        n = len(values)
        if n >= 11:
            points = [(index + 1, values[index]) for index in range(n - 10, n)]
            slope, intercept = _least_squares(points)
            found.append({**row, "predictions": [intercept + slope * (n + ahead) for ahead in range(1, 11)]})
    return found


def _least_squares(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    xs, ys = zip(*points, strict=True)
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a in xs)
    return slope, y - slope * x


def moments(rows: Iterable[Row], *, slots: int = 10, seed: int = 1) -> list[Row]:
    kept: dict[tuple[str, str], tuple[int, list[list[Any]]]] = {}
    found = []
    for row in rows:
        key = (row["sensor"], row["name"])
        n, slot = kept.get(key, (0, []))
        if row["value"] is not None:
            n += 1
            same = [entry for entry in slot if entry[0] == row["value"]]
            if same:
                same[0][1] += 1
            elif len(slot) < slots:
                slot.append([row["value"], 1])
            else:
                digest = hashlib.md5(":".join((str(seed), *key, str(n))).encode()).hexdigest()
                slot[int(digest[:8], 16) % slots] = [row["value"], 1]
        kept[key] = (n, slot)
        moment = sum(n * (2 * count - 1) for _, count in slot) / len(slot) if slot else None
        found.append({**row, "moment": moment})
    return found


def distinct(rows: Iterable[Row]) -> list[Row]:
    sketches: dict[str, list[int]] = defaultdict(lambda: [0] * 32)
    found = []
    for row in rows:
        bits = int.from_bytes(hashlib.sha1(row["sensor"].encode()).digest()[:4], "big")
        bucket, rest = bits % 32, f"{bits // 32:027b}"
        sketch = sketches[row["name"]]
        sketch[bucket] = max(sketch[bucket], len(rest) - len(rest.rstrip("0")))
        found.append({**row, "count": int(0.79402 * 32 * 2 ** (sum(sketch) / 32))})
    return found


def predicted(row: Row) -> float | None:
    if any(row[name] is None for name in ("temperature", "humidity", "dust")):
        return None
    return (
        -0.5106896760749683 * row["temperature"]
        + 0.1550345386077423 * row["humidity"]
        - 0.0043941074441107295 * row["dust"]
        + 37.442739000196276
    )


def classified(airquality: float) -> str:
    return "BAD" if airquality <= 22 else "GOOD" if airquality <= 29 else "VERYGOOD"


def block_averages(rows: Iterable[Row]) -> list[Row]:
    blocks: dict[str, list[float]] = defaultdict(list)
    found = []
    for row in rows:
        if row["airquality_raw"] is None:
            continue
        block = blocks[row["sensor"]]
        block.append(row["airquality_raw"])
        if len(block) == 5:
            found.append({"sensor": row["sensor"], "msgid": row["msgid"], "average": sum(block) / 5})
            block.clear()
    return found


def errors(rows: Iterable[Row]) -> list[Row]:
    """Of predictions and averages (rows that have an `average`), in the order they are to be taken in."""
    averages: dict[str, float] = {}
    found = []
    for row in rows:
        if row["average"] is not None:
            averages[row["sensor"]] = row["average"]
            continue
        average = averages.get(row["sensor"])
        off = None if not average else (row["airquality_raw"] - row["prediction"]) / average
        found.append({"msgid": row["msgid"], "sensor": row["sensor"], "error": off})
    return found


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    place = percent * (len(ordered) + 1) / 100
    if place < 1:
        return ordered[0]
    if place >= len(ordered):
        return ordered[-1]
    low = math.floor(place)
    return ordered[low - 1] + (place - low) * (ordered[low] - ordered[low - 1])


def classes(values: Sequence[float]) -> list[str]:
    p50, p75, top = (percentile(values, percent) for percent in (50, 75, 100))
    return [
        "BAD" if v < p50 else "GOOD" if v < p75 else "VERYGOOD" if v < top else "EXCELLENT" for v in values
    ]


def cleaned(lines: Sequence[str], metadata: Mapping[str, str]) -> list[Row]:
    """All of ETL, for good lines of known sensors."""
    rows = [in_range(each) for at, line in enumerate(lines) for each in observations(wide(at, line))]
    found = joined(interpolated(rows))
    for row in found:
        row["location"], row["type"] = metadata[row["source"]].split(",")
    return found
