"""The paper's WordCount on a small plant: what elastic replicas and nodes save, and what that costs."""

from __future__ import annotations

import pytest
from tests.plan.elastic.ramp import SECONDS, Figures, elastic_replicas, figures, model_based, paper, static


@pytest.fixture(scope="module")
def fixed() -> Figures:
    return static()


def test_the_policies_of_the_paper_save_about_what_they_saved_there(fixed: Figures) -> None:
    run = paper().go(SECONDS)
    found = figures(run.plant)
    replicas, nodes = found.savings(fixed)
    # 55% and 24% in the paper, at 1.7 times the latency.
    assert replicas == pytest.approx(0.55, abs=0.05)
    assert nodes == pytest.approx(0.24, abs=0.05)
    assert found.latency_seconds < 1.7 * fixed.latency_seconds


def test_elastic_replicas_on_nodes_that_stay_save_replicas_alone(fixed: Figures) -> None:
    run = elastic_replicas().go(SECONDS)
    replicas, nodes = figures(run.plant).savings(fixed)
    assert replicas == pytest.approx(0.55, abs=0.05)
    assert nodes == 0.0


def test_model_based_policies_save_more_nodes_at_less_latency(fixed: Figures) -> None:
    run = model_based(1.7 * fixed.latency_seconds).go(SECONDS)
    found = figures(run.plant)
    replicas, nodes = found.savings(fixed)
    by_paper = figures(paper().go(SECONDS).plant)
    assert replicas > 0.5
    assert nodes > 0.4
    assert nodes > by_paper.savings(fixed)[1] + 0.15
    assert found.latency_seconds < 1.3 * fixed.latency_seconds
    assert found.latency_seconds < by_paper.latency_seconds


def test_replicas_and_nodes_follow_the_load_up_and_down() -> None:
    run = paper().go(SECONDS // 2)
    at_peak = run.state.ledger.replicas("wc.count"), len(run.plant.nodes)
    run.go(SECONDS // 2)
    at_end = run.state.ledger.replicas("wc.count"), len(run.plant.nodes)
    assert at_peak[0] >= 3
    assert at_end == (1, 9)  # 4 replicas, and a reserve of 5
    assert at_peak[1] >= 14
