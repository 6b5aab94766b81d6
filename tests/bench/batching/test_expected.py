from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from penstock.bench.batching.expected import expected_of
from penstock.bench.batching.load import evenly, rows_by_second
from penstock.bench.batching.meter import ProductMeter
from penstock.operators.privacy import Policy
from penstock.workloads.wifi.associations import ARROW, BEGIN
from penstock.workloads.wifi.products import Rules
from penstock.workloads.wifi.sharing import PRODUCTS

RULES = Rules()
AP, OTHER = next(iter(RULES.campus.places)), list(RULES.campus.places)[-1]
EXPOSED = sorted(RULES.exposed)[0]
ALL = [
    Policy(subject, product.consumer, [product.purpose])
    for subject in (EXPOSED, "ann")
    for product in PRODUCTS.values()
]


def tick(seconds: float, *rows: tuple[str, str]) -> tuple[float, pa.Table]:
    """Rows of (subject, place) that arrive then, a millisecond after each other."""
    made: list[dict[str, Any]] = [
        {"subject": who, "mac": "m", "ap": ap, "at": BEGIN + timedelta(seconds=seconds - 0.05 + place / 1000)}
        for place, (who, ap) in enumerate(rows)
    ]
    return seconds, pa.Table.from_pylist(made, schema=ARROW)


def test_results_are_due_when_the_rows_they_are_made_of_arrive() -> None:
    arrivals = [tick(0.1, (EXPOSED, AP)), tick(2.0, ("ann", AP)), tick(6.0, ("ann", OTHER))]
    arrivals += [tick(11.0, ("bob", AP)), tick(12.0, ("ann", OTHER)), tick(13.0, ("ann", AP))]
    expected = expected_of(arrivals, ALL, RULES)
    assert expected.rows == {
        "exposure": [2.0, 13.0],
        "concierge": [0.1, 2.0, 6.0, 12.0, 13.0],
        "archive": [0.1, 2.0, 6.0, 12.0, 13.0],
    }
    begin = BEGIN.timestamp()
    # Of bob nothing may be known. Any row of the others ends the windows before it, and whether somebody
    # moved in them makes no difference.
    assert expected.windows == {
        "flow": {begin + 5.0: 6.0, begin + 10.0: 12.0},
        "occupancy": {begin + 10.0: 12.0},
    }


def test_latencies_are_those_of_all_products() -> None:
    arrivals = [tick(0.1, ("ann", AP)), tick(11.0, ("ann", AP))]
    expected = expected_of(arrivals, ALL, RULES)
    meters = {name: ProductMeter(lambda: 100.4) for name in PRODUCTS}
    meters["archive"].take(arrivals[0][1])
    found = expected.latencies(100.0, meters)
    assert found["archive"][0] == (100.1, pytest.approx(0.3))
    assert found["archive"][1][1] == float("inf")
    assert found["exposure"] == []


def test_an_even_load_has_the_same_rows_in_every_tick() -> None:
    arrivals = [tick(0.1, *[("ann", AP)] * 50), tick(1.9, *[("bob", AP)] * 150)]
    even = evenly(arrivals, 2.0)
    assert [table.num_rows for _, table in even] == [10] * 20
    assert rows_by_second(even) == [100.0, 100.0]
    assert [seconds for seconds, _ in even] == pytest.approx([0.1 * (place + 1) for place in range(20)])
    times = pa.concat_tables([table for _, table in even])["at"].to_pylist()
    assert times == sorted(times)
    assert times[-1] - times[0] == timedelta(seconds=1.99)
