"""Plans against an exhaustive search, and their promises."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.plan import PlanStage, Pool, Product, Workflow, plan_batches
from penstock.plan.delays import DelayModel

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384)


def some_workflow(seed: int, count: int) -> tuple[Workflow, Pool]:
    rng = random.Random(seed)
    stages: list[PlanStage] = []
    for place in range(count):
        chosen = rng.sample(range(place), min(place, rng.choice([1, 1, 1, 2])))
        stages.append(
            PlanStage(
                f"s{place}",
                rng.uniform(0.02, 0.15),
                rng.choice([1e-6, 1e-5, 1e-4, 1e-3]),
                {f"s{above}": rng.choice([0.1, 0.5, 1.0, 2.0]) for above in chosen},
                rows_per_second=rng.choice([20.0, 200.0, 2000.0]) if place == 0 else 0.0,
            )
        )
    read = {name for stage in stages for name in stage.above}
    products = tuple(
        Product(f"p{each.name}", each.name, rng.choice([0.5, 1.0, 2.0, 5.0, 30.0]))
        for each in stages
        if each.name not in read
    )
    return Workflow(tuple(stages), products), Pool(rng.choice([1, 2, 4]))


def best_ratio(workflow: Workflow, pool: Pool) -> float | None:
    """Of all batches on a grid, the least of the largest delay over target that 6b allows."""
    model = DelayModel(workflow, pool)
    estimates = map(model.estimate, product(SIZES, repeat=len(workflow.stages)))
    return min((each.ratio for each in estimates if model.fits(each)), default=None)


@pytest.mark.parametrize("count", [1, 2, 3])
@given(seed=st.integers(0, 10_000))
@example(seed=647)  # one stage must take a row more, while another takes a few less
@settings(max_examples=15, deadline=None)
def test_a_plan_is_never_infeasible_where_one_is_feasible_and_within_a_tenth_of_the_best(
    count: int, seed: int
) -> None:
    workflow, pool = some_workflow(seed, count)
    best, plan = best_ratio(workflow, pool), plan_batches(workflow, pool)
    if best is None:
        # The grid has nothing that fits; a finer one might.
        return
    assert plan.fits
    assert plan.ratio <= 1.1 * best
    if best <= 1.0:
        assert plan.holds


@given(seed=st.integers(0, 10_000), count=st.integers(4, 20))
@settings(max_examples=20, deadline=None)
def test_what_a_plan_says_is_what_its_batches_lead_to(seed: int, count: int) -> None:
    workflow, pool = some_workflow(seed, count)
    plan = plan_batches(workflow, pool)
    model = DelayModel(workflow, pool)
    estimate = model.estimate([plan.rows[stage.name] for stage in workflow.stages])
    assert (plan.ratio, plan.busy_slots) == (estimate.ratio, estimate.busy_slots)
    assert plan.fits == model.fits(estimate)
    late = {each.name for each in workflow.products if plan.delays[each.name] > each.target_seconds}
    assert set(plan.late) == late


def test_patient_products_get_larger_batches_than_urgent_ones() -> None:
    stages = (
        PlanStage("read", 0.05, 1e-5, rows_per_second=1000.0),
        PlanStage("alert", 0.05, 1e-5, {"read": 1.0}),
        PlanStage("archive", 0.05, 1e-5, {"read": 1.0}),
    )
    products = (Product("alerts", "alert", 0.5), Product("kept", "archive", 30.0))
    plan = plan_batches(Workflow(stages, products), Pool(2))
    assert plan.holds
    assert plan.rows["archive"] > 5 * plan.rows["alert"]


def test_memory_bounds_the_batches() -> None:
    stages = (PlanStage("read", 0.05, 1e-6, rows_per_second=10_000.0),)
    workflow = Workflow(stages, (Product("kept", "read", 30.0),))
    assert plan_batches(workflow, Pool(1, most_rows=600)).fits
    # With less memory the fixed cost of the turns alone would take more than the slot.
    assert not plan_batches(workflow, Pool(1, most_rows=400)).fits


def test_no_batch_is_larger_than_what_is_known_of_its_stage() -> None:
    stages = (PlanStage("read", 0.05, 1e-6, rows_per_second=10_000.0, most_rows=300),)
    plan = plan_batches(Workflow(stages, (Product("kept", "read", 30.0),)), Pool(1))
    assert plan.rows == {"read": 300}


def test_overload_gets_the_plan_that_violates_least() -> None:
    stages = (PlanStage("read", 0.05, 0.002, rows_per_second=1000.0),)
    workflow = Workflow(stages, (Product("kept", "read", 5.0),))
    plan = plan_batches(workflow, Pool(1))
    assert not plan.fits
    assert not plan.holds
    # Nearly all of its time goes to rows, not to the fixed cost of turns.
    assert plan.busy_slots == pytest.approx(2.0, rel=0.03)


def test_a_stage_that_no_rows_come_to_has_no_batch() -> None:
    stages = (PlanStage("read", 0.05, 0.002), PlanStage("next", 0.05, 0.002, {"read": 1.0}))
    plan = plan_batches(Workflow(stages, (Product("kept", "next", 5.0),)), Pool(1))
    assert plan.rows == {}
    assert plan.holds
