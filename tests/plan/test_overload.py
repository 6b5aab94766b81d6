from __future__ import annotations

from dataclasses import replace

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


def test_where_memory_is_short_it_is_told_how_many_rows_would_do() -> None:
    # 0.05 s a turn: with fewer than 556 rows in it, the slot would have no time for the turns.
    stages = (PlanStage("read", 0.05, 1e-6, rows_per_second=10_000.0),)
    workflow, pool = Workflow(stages, (Product("kept", "read", 30.0),)), Pool(1, most_rows=400)
    plan = plan_batches(workflow, pool)
    assert not plan.holds
    short = shortage_of(workflow, pool, plan)
    assert short.rows is not None
    assert 556 <= short.rows < 570
    assert plan_batches(workflow, replace(pool, most_rows=short.rows)).holds
    assert short.slots is None
    needed = f"memory for {short.rows} rows in all batches (plan_rows)"
    assert short.told().endswith(f"; needed: {needed}")


def test_memory_that_would_not_help_is_not_asked_for() -> None:
    stages = (PlanStage("read", 0.05, 0.002, rows_per_second=1000.0),)
    workflow, pool = Workflow(stages, (Product("kept", "read", 5.0),)), Pool(1, most_rows=400)
    short = shortage_of(workflow, pool, plan_batches(workflow, pool))
    assert short.rows is None
    assert "plan_rows" not in short.told()
