"""Both kinds of sides run the workflow from feed to figures, in a process of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.workers import Worker
from penstock.workloads.wifi.sharing import PRODUCTS

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]


@pytest.mark.parametrize(
    ("side", "ask"), [("ours", {"policy": "batchit"}), ("plain", {"trigger": "0.2 seconds"})]
)
def test_a_side_makes_all_products(tmp_path: Path, side: str, ask: dict[str, str]) -> None:
    with Worker("penstock.bench.batching.worker", tmp_path, "--side", side) as worker:
        assert worker.ready() is True
        told = worker.ask(rates=[(40.0, 12.0)], warmup=4.0, **ask)
        costs = worker.ask(sizes=[100], seconds=6.0) if side == "ours" else []
    assert set(told["products"]) == set(PRODUCTS)
    # How late results are is not for a test to say; that some come is.
    assert told["products"]["concierge"]["came"] > 0
    assert 0.0 <= told["in_time"] <= 1.0
    if side == "ours":
        assert told["plans"] >= 1
        assert told["slot_seconds"] > 0.0
        assert {each["rows"] for each in costs} == {100}
