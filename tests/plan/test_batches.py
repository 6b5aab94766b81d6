"""Plans against an exhaustive search, and their promises."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from math import inf

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.plan import PlanStage, Pool, Product, Workflow, plan_batches
from penstock.plan.batches import Search
from penstock.plan.delays import DelayModel

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384)
NO_LIMIT = 1_000_000


def some_workflow(seed: int, count: int, *, limits: bool = False) -> tuple[Workflow, Pool]:
    """With `limits`, memory is bounded, some stages too, and some are blocking."""
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
                most_rows=rng.choice([NO_LIMIT, NO_LIMIT, 1024, 64]) if limits else NO_LIMIT,
                block_rows=rng.choice([0, 0, 0, 5, 40]) if limits else 0,
            )
        )
    read = {name for stage in stages for name in stage.above}
    products = tuple(
        Product(f"p{each.name}", each.name, rng.choice([0.5, 1.0, 2.0, 5.0, 30.0]))
        for each in stages
        if each.name not in read
    )
    pool = Pool(rng.choice([1, 2, 4]))
    if limits:
        pool = replace(pool, most_rows=rng.choice([200, 2000, 20_000]))
    return Workflow(tuple(stages), products), pool


def best_ratio(workflow: Workflow, pool: Pool) -> float | None:
    """Of all batches on a grid, the least of the largest delay over target that 6b and 6c allow."""
    model = DelayModel(workflow, pool)
    sizes = [[size for size in SIZES if size <= stage.most_rows] for stage in workflow.stages]
    estimates = map(model.estimate, product(*sizes))
    return min((each.ratio for each in estimates if model.fits(each)), default=None)


@pytest.mark.parametrize("count", [1, 2, 3])
@given(seed=st.integers(0, 10_000))
@example(seed=647)  # one stage must take a row more, while another takes a few less
@settings(max_examples=15, deadline=None)
def test_a_plan_is_never_infeasible_where_one_is_feasible_and_within_a_tenth_of_the_best(
    count: int, seed: int
) -> None:
    check_against_all(*some_workflow(seed, count))


@pytest.mark.parametrize("count", [1, 2, 3])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_so_it_is_with_limits_on_memory_and_stages_and_with_blocks(count: int, seed: int) -> None:
    check_against_all(*some_workflow(seed, count, limits=True))


def check_against_all(workflow: Workflow, pool: Pool) -> None:
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


def reduced(search: Search, *batches: int, gamma: float = 0.5) -> list[int]:
    """What Algorithm 2 makes of batches."""
    search.batches, search.best = list(batches), search.model.estimate(batches)
    search.reduce(gamma)
    return search.batches


def chain(target_seconds: float, *, slots: int = 4, most_rows: float = inf, fixed: float = 0.01) -> Search:
    """`first` gets 100 rows a second and passes on half of them; 6b wants at least 2 and 1 at a time."""
    stages = (
        PlanStage("first", fixed, 0.0, rows_per_second=100.0),
        PlanStage("second", fixed, 0.0, {"first": 0.5}),
    )
    workflow = Workflow(stages, (Product("out", "second", target_seconds),))
    return Search(DelayModel(workflow, Pool(slots, most_rows=most_rows)))


def test_reduction_begins_with_the_stage_that_gathers_longest() -> None:
    # 1 s of input for the first stage, 4 s for the second: at half of it the target is met.
    assert reduced(chain(2.5), 100, 200) == [100, 100]
    assert reduced(chain(2.5), 400, 100) == [200, 100]
    # Rows that come at once wait for each other above only: both have to shrink.
    assert reduced(chain(1.2), 200, 100) == [100, 50]


def test_reduction_goes_by_gamma_and_rounds_down_to_one_row_at_least() -> None:
    assert reduced(chain(2.5), 100, 200, gamma=0.6) == [100, 120]
    assert reduced(chain(0.019, fixed=0.001), 3, 1) == [1, 1]


def test_reduction_refuses_a_step_that_breaks_the_throughput() -> None:
    # With 0.3 s a turn, fewer than 34 rows at the first stage are more turns than one slot can do.
    search = chain(0.1, fixed=0.3)
    assert reduced(search, 64, 64) == [64, 32]
    assert search.best is not None
    assert search.model.fits(search.best)


def test_reduction_ends_when_no_step_is_left_though_the_target_is_not_met() -> None:
    search = chain(0.0001, fixed=0.001)
    assert reduced(search, 1000, 1000) == [1, 1]
    # Ten halvings of two stages, and one estimate before.
    assert search.trials <= 21


def test_reduction_does_not_break_more_what_is_broken_already() -> None:
    search = chain(0.5, fixed=2.0)
    assert not search.model.fits(search.model.estimate([100, 100]))
    assert reduced(search, 100, 100) == [100, 100]
    # Too many rows for the memory are another thing: fewer help.
    assert reduced(chain(0.8, most_rows=120), 100, 100) == [50, 25]


def test_stages_that_lead_to_no_late_product_are_left_alone() -> None:
    stages = (
        PlanStage("read", 0.01, 0.0, rows_per_second=100.0),
        PlanStage("alert", 0.01, 0.0, {"read": 1.0}),
        PlanStage("keep", 0.01, 0.0, {"read": 1.0}),
    )
    products = (Product("alerts", "alert", 0.7), Product("kept", "keep", 30.0))
    search = Search(DelayModel(Workflow(stages, products), Pool(4)))
    assert reduced(search, 25, 100, 500) == [25, 50, 500]


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


def test_however_many_rows_come_the_batches_stay_within_the_memory() -> None:
    stages = (
        PlanStage("read", 0.05, 1e-4, rows_per_second=50_000.0),
        PlanStage("keep", 0.05, 1e-4, {"read": 1.0}),
    )
    plan = plan_batches(Workflow(stages, (Product("kept", "keep", 1.0),)), Pool(1, most_rows=300))
    assert not plan.fits
    assert 250 < sum(plan.rows.values()) <= 300


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
