"""When each result of the Wi-Fi products is due: by a plain computation of what was fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from penstock.bench.batching.meter import ProductMeter, row_latencies, window_latencies
from penstock.operators.privacy.policies import Policy
from penstock.workloads.wifi.associations import Arrival
from penstock.workloads.wifi.check import Checked
from penstock.workloads.wifi.products import Rules

ROW_PRODUCTS = ("exposure", "concierge", "archive")
WINDOW_PRODUCTS = ("flow", "occupancy")
EXACTLY = timedelta(microseconds=1)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Expected:
    """Of each product, when its results are due, in seconds from the start."""

    rows: Mapping[str, Sequence[float]]
    windows: Mapping[str, Mapping[float, float]]
    """By the window's end, when the first row that comes to the window after it arrives."""

    def latencies(
        self, base: float, meters: Mapping[str, ProductMeter]
    ) -> dict[str, list[tuple[float, float]]]:
        """(due, latency) of all results, by product; a result that never came has an infinite one."""
        found = {
            name: row_latencies([base + each for each in due], meters[name].counts)
            for name, due in self.rows.items()
        }
        for name, ends in self.windows.items():
            due = {end: base + each for end, each in ends.items()}
            found[name] = window_latencies(due, meters[name].windows)
        return found


def expected_of(arrivals: Sequence[Arrival], policies: Sequence[Policy], rules: Rules) -> Expected:
    """The moments at which all results are due."""
    rows: list[dict[str, Any]] = []
    arrived: dict[datetime, float] = {}
    for seconds, table in arrivals:
        for row in table.to_pylist():
            rows.append(row)
            arrived[row["at"]] = seconds
    checked = Checked(rows, policies, rules.campus.places, rules.exposed)
    made = {
        "exposure": checked.exposure(),
        "concierge": checked.concierge(),
        "archive": checked.archive(EXACTLY),
    }
    sizes = {"flow": _length(rules.flow_window), "occupancy": _length(rules.occupancy_window)}
    starts = {
        "flow": checked.flow(sizes["flow"], rules.flow_buildings_each),
        "occupancy": checked.occupancy(sizes["occupancy"]),
    }
    # Event time goes on with rows that come to the window, not with those that were filtered out before.
    closing = {name: [row["at"] for row in checked.shared(name)] for name in WINDOW_PRODUCTS}
    windows = {
        name: _complete(
            [start + sizes[name] for start in starts[name]], [(at, arrived[at]) for at in closing[name]]
        )
        for name in sizes
    }
    return Expected({name: [arrived[row["at"]] for row in each] for name, each in made.items()}, windows)


def _complete(ends: Sequence[datetime], arrived: Sequence[tuple[datetime, float]]) -> dict[float, float]:
    """When the first row at or after each end arrives; windows that nothing follows are left out."""
    arrived, place = sorted(arrived), 0
    found: dict[float, float] = {}
    for end in sorted(ends):
        while place < len(arrived) and arrived[place][0] < end:
            place += 1
        if place < len(arrived):
            found[end.timestamp()] = arrived[place][1]
    return found


def _length(text: str) -> timedelta:
    return timedelta(seconds=float(text[:-1]) * _UNITS[text[-1]])
