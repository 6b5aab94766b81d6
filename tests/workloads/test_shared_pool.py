"""What runs, and on which sides."""

from xml.etree import ElementTree

import pytest

from penstock.errors import PenstockError
from penstock.workloads.share_worker import pools
from penstock.workloads.shared_pool import LOADS, side_named


def test_there_are_four_urgent_and_four_bulky_pipelines() -> None:
    described = [
        (each.group, each.rows_per_second, each.window_seconds, each.target_seconds) for each in LOADS
    ]
    assert described == [("urgent", 1_000, 1, 0.8)] * 4 + [("bulky", 100_000, 10, 60.0)] * 4


def test_an_unknown_side_is_refused() -> None:
    with pytest.raises(PenstockError) as refused:
        side_named("flink")
    assert str(refused.value) == (
        "a side must be one of spark, tuned, fair, penstock, got 'flink': there is no such way to run"
    )


def test_fair_pools_give_the_urgent_queries_weight_and_a_share() -> None:
    found = {
        pool.get("name"): (pool.findtext("weight"), pool.findtext("minShare"))
        for pool in ElementTree.fromstring(pools(LOADS)).iter("pool")
    }
    assert found == {load.name: ("10", "1") if load.group == "urgent" else ("1", "0") for load in LOADS}
