"""The controller's parts of the bench in virtual time: what they would show if Spark did as declared."""

from __future__ import annotations

import pytest
from tests.bench.scaling.virtual_time import Machine, VirtualStand

from penstock.bench.result import BenchResult
from penstock.bench.scaling import control
from penstock.bench.scaling.bench import FULL


@pytest.mark.slow
@pytest.mark.parametrize("before_seconds", [3.8, 8.8])
def test_the_controller_follows_changes_of_rate_and_leaves_a_burst_alone(before_seconds: float) -> None:
    machine = Machine(0.12, 0.006, scv=0.1, seed=2, before_seconds=before_seconds, acting_seconds=2.0)
    result = BenchResult("scaling")
    control.changes_of_rate(VirtualStand(FULL, machine), result)
    assert result.missed == [], (result.figures, result.tables[0].rows)


def test_slots_end_at_the_same_places_from_every_start() -> None:
    result = BenchResult("scaling")
    control.convergence(VirtualStand(FULL, Machine()), result, {"vld": control.PLACED["vld"]})
    assert result.missed == [], result.tables[0].rows
