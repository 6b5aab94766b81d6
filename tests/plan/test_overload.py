from __future__ import annotations

import pytest

from penstock.plan import PlanStage, Pool, Product, Shortage, Workflow, plan_batches, shortage_of


def test_the_rate_that_can_be_held_and_the_slots_that_are_needed_are_told() -> None:
    stages = (
        PlanStage("read", 0.05, 0.0005, rows_per_second=1000.0),
        PlanStage("keep", 0.05, 0.0008, {"read": 1.0}),
    )
    workflow, pool = Workflow(stages, (Product("kept", "keep", 5.0),)), Pool(1)
    plan = plan_batches(workflow, pool)
    assert not plan.holds
    short = shortage_of(workflow, pool, plan)
    # 1.3 slots for rows alone, of 0.9; fixed costs take some more.
    assert 0.5 < short.share < 0.9 / 1.3
    assert short.rows_per_second == pytest.approx(1000 * short.share)
    assert plan_batches(workflow.scaled(short.share), pool).holds
    assert short.slots == 2
    assert short.told().startswith(f"no plan holds: {short.rows_per_second:,.0f} rows/s can be held, ")
    assert "needed: 2 slots" in short.told()


def test_a_target_below_one_turn_is_helped_by_no_slots() -> None:
    workflow = Workflow(
        (PlanStage("read", 0.4, 0.0, rows_per_second=1.0),), (Product("alerts", "read", 0.1),)
    )
    plan = plan_batches(workflow, Pool(2))
    short = shortage_of(workflow, Pool(2), plan)
    assert short == Shortage(0.0, 0.0, None, {"alerts": plan.delays["alerts"]})
    assert short.told() == "no plan holds: no rate can be held; needed: targets such as alerts within 0.4 s"
