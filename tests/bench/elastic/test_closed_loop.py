"""The bench's own settings under its managers, on a cluster in virtual time on which nodes are slow to start.

No measurement: it shows that the marks of `penstock bench elastic` can be met where a start costs the machine
as much as it does, and that replicas do not go up and down for nothing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.elastic.virtual_cluster import Costs, VirtualCluster

from penstock.bench.elastic.scale import Scale
from penstock.bench.elastic.scenarios import TARGET_RATIO

SCALE = Scale()


@pytest.fixture(scope="module", params=[5.0, 9.0], ids=["quick starts", "slow starts"])
def costs(request: pytest.FixtureRequest) -> Costs:
    return Costs(start=request.param, yielding=False)


@pytest.fixture(scope="module")
def static() -> VirtualCluster:
    """No node starts there, so that it does not matter what that costs."""
    return VirtualCluster(SCALE, "static", Costs(yielding=False)).run()


def test_the_papers_policies_reach_their_marks_though_nodes_are_slow_to_start(
    static: VirtualCluster, costs: Costs
) -> None:
    run = VirtualCluster(SCALE, "nodes", costs).run()
    assert 1.0 - run.replicas / static.replicas >= 0.55
    assert 1.0 - run.mean_nodes / static.mean_nodes >= 0.24
    assert run.latency_seconds <= 1.7 * static.latency_seconds
    # Up and down once: no more changes than twice the replicas there are at the peak, or little more.
    assert len(run.changes) <= 24


def test_model_based_policies_reach_theirs(static: VirtualCluster, costs: Costs) -> None:
    aimed = replace(SCALE, target_seconds=TARGET_RATIO * static.latency_seconds)
    run = VirtualCluster(aimed, "model", costs).run()
    assert 1.0 - run.mean_nodes / static.mean_nodes >= 0.40
    assert run.latency_seconds <= 1.3 * static.latency_seconds


def test_nodes_that_begin_cold_in_a_short_minute_do_not_let_replicas_go_up_and_down() -> None:
    short, cold = Scale(minute=6.0), Costs(start=9.0, cold=2.0, yielding=False)
    changes = len(VirtualCluster(short, "nodes", cold).run().changes)
    # Where cold tasks counted as use of a replica, and any could go at once, there were more than 40.
    assert changes <= 30
    assert len(VirtualCluster(short, "nodes", replace(cold, cold=0.3)).run().changes) < changes
