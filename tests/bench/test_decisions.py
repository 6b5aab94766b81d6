"""Decisions of the scheduler, timed."""

import pytest

from penstock.bench.decisions import decision_seconds
from penstock.scheduling.catalog import POLICIES


@pytest.mark.parametrize("policy", POLICIES)
def test_decisions_are_timed_one_by_one(policy: str) -> None:
    times = decision_seconds(policy, 50, stages=100)
    assert len(times) == 50
    assert min(times) > 0
