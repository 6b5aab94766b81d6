"""Sense-Your-City as RIoTBench plays it: the real trace where it is there, else one that is like it."""

from __future__ import annotations

import bisect
import json
import os
import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

TRACE, METADATA = "riotbench/SYS_sample_data_senml.csv", "riotbench/city-metadata.txt"
_BEGIN_MS, _SECONDS = 1_422_748_800_000, 60
_STATIONS, _STATION_LETTERS, _IDS = 84, 25, 2162
# Of 788 sources in 1,000 lines, so many appear that often.
_APPEARANCES = {1: 597, 2: 172, 3: 17, 4: 2}
_LOCATIONS = ("gym", "hall", "library", "market", "park", "quay", "school", "station", "tower", "works")
_TYPES = {
    "analog": 444,
    "electronic": 417,
    "solar": 407,
    "heat": 248,
    "digital": 219,
    "ultrasound": 218,
    "radar": 209,
}


@dataclass(frozen=True)
class City:
    """Lines of SenML in the order they are played, and what is known of each sensor: "location,type"."""

    lines: tuple[str, ...]
    metadata: Mapping[str, str]
    origin: str

    @cached_property
    def trace(self) -> pa.Table:
        """The lines as Replay takes them: one column, `value`."""
        import pyarrow as pa

        return pa.table({"value": pa.array(self.lines, pa.string())})

    @cached_property
    def readings(self) -> tuple[tuple[float, ...], ...]:
        """Temperature, humidity, light, dust and air quality of every line: TRAIN's table."""
        found = []
        for line in self.lines:
            entries = json.loads(line[line.index("{") :])["e"]
            values = {entry["n"]: entry["v"] for entry in entries if "v" in entry}
            found.append(tuple(float(values[name]) for name in _CURVES))
        return tuple(found)


@dataclass(frozen=True)
class _Curve:
    """How one quantity is distributed: values at shares of all readings, joined by straight lines."""

    shares: tuple[float, ...]
    values: tuple[float, ...]
    decimals: int

    def draw(self, chance: random.Random) -> str:
        share = chance.random()
        at = min(bisect.bisect_right(self.shares, share), len(self.shares) - 1)
        low, high = self.shares[at - 1], self.shares[at]
        part = (share - low) / (high - low)
        value = self.values[at - 1] + part * (self.values[at] - self.values[at - 1])
        text = f"{value:.{self.decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text


# The ends of RIoTBench's valid ranges are among the values, so that as many readings lie outside of them
# as do in the real trace: 7.3%, 15.8%, 0.8%, 9.9% and 8.3%.
_CURVES: dict[str, _Curve] = {
    "temperature": _Curve(
        (0, 0.029, 0.122, 0.261, 0.493, 0.724, 0.863, 0.956, 1),
        (-8.1, 0.65, 6.2, 11.6, 23.8, 28.2, 30.8, 35.15, 40.3),
        1,
    ),
    "humidity": _Curve(
        (0, 0.038, 0.122, 0.249, 0.459, 0.67, 0.796, 0.88, 1),
        (12.0, 20.25, 31.9, 38.4, 46.6, 55.3, 63.7, 69.15, 99.9),
        1,
    ),
    "light": _Curve((0, 0.5, 0.744, 0.893, 0.992, 1), (0, 0, 299, 1011, 5153.5, 9800), 0),
    "dust": _Curve(
        (0, 0.055, 0.145, 0.28, 0.505, 0.731, 0.866, 0.956, 1),
        (-1, 83.355, 234.79, 439.66, 805.39, 1479.59, 2162.53, 3322.675, 10427.86),
        2,
    ),
    "airquality_raw": _Curve(
        (0, 0.029, 0.12, 0.258, 0.487, 0.717, 0.854, 0.946, 0.999, 1),
        (4, 11.5, 15, 19, 24, 29, 34, 49.5, 144, 970),
        0,
    ),
}
_UNITS = {"temperature": "far"}


def generate_city(rows: int = 1000, seed: int = 1) -> City:
    """So many lines, the same for the same seed: 788 sources a thousand lines, over 60 s, 17 a second or so.

    Longer ones repeat the sources of the first thousand, with new readings and on in time.
    """
    chance = random.Random(seed)
    stations = {_station_id(chance): _place(chance) for _ in range(_STATIONS)}
    ids = [f"{station}{number}" for number in range(_IDS // _STATIONS + 1) for station in stations][:_IDS]
    types = [kind for kind, count in _TYPES.items() for _ in range(count)]
    chance.shuffle(types)
    metadata = {
        id: f"{chance.choice(_LOCATIONS)},{kind}" for id, kind in zip(sorted(ids), types, strict=True)
    }
    lines: list[str] = []
    while len(lines) < rows:
        lines += _thousand(ids, stations, len(lines), random.Random(f"{seed} {len(lines)}"), chance)
    return City(tuple(lines[:rows]), metadata, "generated")


def _thousand(
    ids: Sequence[str],
    stations: Mapping[str, tuple[str, str]],
    first: int,
    order: random.Random,
    chance: random.Random,
) -> list[str]:
    """A thousand lines with as many sources as the real trace has, each as often."""
    names = iter(ids)
    counts = [often for often, count in _APPEARANCES.items() for _ in range(count)]
    sources = [name for often, name in zip(counts, names, strict=False) for _ in range(often)]
    order.shuffle(sources)
    begin = _BEGIN_MS + first // 1000 * _SECONDS * 1000
    return [
        _line(source, stations[source[:_STATION_LETTERS]], begin + at * _SECONDS // 1000 * 1000, chance)
        for at, source in enumerate(sources)
    ]


def _line(source: str, place: tuple[str, str], millis: int, chance: random.Random) -> str:
    entries = [{"u": "string", "n": "source", "sv": source}]
    entries += [{"v": place[0], "u": "lon", "n": "longitude"}, {"v": place[1], "u": "lat", "n": "latitude"}]
    for name, curve in _CURVES.items():
        entries.append({"v": curve.draw(chance), "u": _UNITS.get(name, "per"), "n": name})
    return f"{millis}," + json.dumps({"e": entries, "bt": millis}, separators=(",", ":"))


def _station_id(chance: random.Random) -> str:
    letters = string.ascii_lowercase + string.digits
    return "ci4" + "".join(chance.choices(letters, k=_STATION_LETTERS - 3))


def _place(chance: random.Random) -> tuple[str, str]:
    return f"{chance.uniform(-123, 122):.7f}", f"{chance.uniform(-34, 52):.7f}"


def read_city(folder: str | Path) -> City:
    """The real trace from a folder that holds `riotbench/`."""
    lines = (Path(folder) / TRACE).read_text().splitlines()
    metadata = dict(line.split(":", 1) for line in (Path(folder) / METADATA).read_text().splitlines() if line)
    return City(tuple(lines), metadata, str(Path(folder) / TRACE))


def data_folder() -> Path | None:
    """Where the real trace lies: in `PENSTOCK_DATA`, else in shared/data beside the project, or nowhere."""
    chosen = os.environ.get("PENSTOCK_DATA")
    root = Path(__file__).resolve().parents[4]
    folder = Path(chosen) if chosen else root.parent / "shared" / "data"
    return folder if (folder / TRACE).is_file() and (folder / METADATA).is_file() else None


def find_city(path: str | Path | None = None) -> City:
    """The real trace of `path` or `data_folder()`, else a generated one."""
    folder = Path(path) if path is not None else data_folder()
    return read_city(folder) if folder is not None else generate_city()
