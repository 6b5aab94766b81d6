from __future__ import annotations

import pytest

from penstock.plan import PlanError, PlanStage, Pool, Product, Workflow


def stage(name: str, above: dict[str, float] | None = None, rate: float = 0.0) -> PlanStage:
    return PlanStage(name, 0.1, 0.001, above or {}, rows_per_second=rate)


def test_rates_follow_the_graph_by_selectivity() -> None:
    workflow = Workflow(
        (
            stage("read", rate=100.0),
            stage("left", {"read": 0.5}),
            stage("right", {"read": 2.0}),
            stage("both", {"left": 1.0, "right": 0.1}, rate=5.0),
        ),
        (),
    )
    assert workflow.rates == pytest.approx((100.0, 50.0, 200.0, 75.0))
    assert workflow.scaled(2.0).rates == pytest.approx((200.0, 100.0, 400.0, 150.0))


def test_rows_that_go_round_a_loop_count_at_each_round() -> None:
    again = PlanStage("step", 0.1, 0.001, {"read": 1.0}, {"more": 1.0})
    workflow = Workflow((stage("read", rate=10.0), again, stage("more", {"step": 0.5})), ())
    assert workflow.rates == pytest.approx((10.0, 20.0, 10.0))


def test_a_loop_that_never_ends_is_refused() -> None:
    again = PlanStage("step", 0.1, 0.001, {"read": 1.0}, {"step": 1.0})
    with pytest.raises(PlanError) as error:
        Workflow((stage("read", rate=10.0), again), ()).rates  # noqa: B018
    assert str(error.value) == (
        "rows that go round a loop must become fewer, got as many or more at each round: "
        "no plan can hold what never ends"
    )


def test_a_stage_is_as_urgent_as_the_tightest_product_below_it() -> None:
    workflow = Workflow(
        (stage("read", rate=1.0), stage("quick", {"read": 1.0}), stage("slow", {"read": 1.0})),
        (Product("alert", "quick", 0.5), Product("archive", "slow", 30.0)),
    )
    assert workflow.urgency == (0.5, 0.5, 30.0)


@pytest.mark.parametrize(
    ("stages", "products", "message"),
    [
        (
            (stage("b", {"a": 1.0}), stage("a")),
            (),
            "stage 'b' must come after the stages that it reads, got 'a' later or never: "
            "no rate could be told",
        ),
        ((stage("a"),), (Product("p", "b", 1.0),), "product 'p' must be made by a stage, got 'b'"),
        (
            (stage("a"),),
            (Product("p", "a", 0.0),),
            "product 'p' must have a positive target, got 0.0 s: no plan could meet it",
        ),
    ],
)
def test_a_workflow_that_hangs_in_the_air_is_refused(
    stages: tuple[PlanStage, ...], products: tuple[Product, ...], message: str
) -> None:
    with pytest.raises(PlanError) as error:
        Workflow(stages, products)
    assert str(error.value) == message


def test_a_pool_without_slots_or_with_all_in_reserve_is_refused() -> None:
    with pytest.raises(PlanError, match="a pool must have at least 1 slot, got 0"):
        Pool(0)
    with pytest.raises(PlanError, match="the reserve of a pool must be 0 or more and less than 1, got 1"):
        Pool(1, reserve=1.0)
