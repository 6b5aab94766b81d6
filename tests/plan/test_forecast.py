from __future__ import annotations

from math import inf

import pytest

from penstock.errors import PenstockError
from penstock.model import BulkService, DealtTurns, GIGk, MMk, StageModel
from penstock.plan.forecast import Forecast, fewest_slots, forecast
from penstock.plan.slot_errors import SlotError
from penstock.plan.workflow import PlanStage, Product, Workflow


def two_ways(rate: float = 1000.0, target: float = inf) -> Workflow:
    """Rows are read, a tenth becomes alerts, and all are kept."""
    return Workflow(
        (
            PlanStage("read", 0.05, 0.0001, rows_per_second=rate),
            PlanStage("alert", 0.04, 0.0002, {"read": 0.1}),
            PlanStage("keep", 0.10, 0.0012, {"read": 1.0}),
        ),
        (Product("alerts", "alert", target), Product("kept", "keep", inf)),
    )


def seconds(shown: Forecast) -> dict[str, float]:
    return {stage.name: stage.seconds for stage in shown.stages}


def _met(workflow: Workflow, slots: int) -> bool:
    try:
        return forecast(workflow, slots).met
    except SlotError:
        return False


def test_more_slots_are_never_worse_where_small_stages_could_share() -> None:
    tiny = [PlanStage(f"tiny {number}", 0.01, 0.0001, rows_per_second=10.0) for number in range(3)]
    wide = PlanStage("wide", 0.1, 0.0019, rows_per_second=1000.0)
    workflow = Workflow((wide, *tiny), (Product("out", "wide", inf),))
    sojourns = [forecast(workflow, slots).sojourn_seconds for slots in range(3, 12)]
    assert sojourns == sorted(sojourns, reverse=True)


def test_slots_of_their_own_are_kept_where_sharing_would_miss_a_target() -> None:
    tiny = [PlanStage(f"tiny {number}", 0.05, 0.03, rows_per_second=10.0) for number in range(3)]
    wide = PlanStage("wide", 0.1, 0.0019, rows_per_second=1000.0)
    products = (Product("out", "wide", inf), *(Product(each.name, each.name, 0.16) for each in tiny))
    workflow = Workflow((wide, *tiny), products)
    assert [forecast(workflow, slots).met for slots in range(5, 21)] == [True] * 16
    assert fewest_slots(workflow).slots == 5


def test_with_slots_for_all_each_stage_is_under_bulk_service_with_its_own() -> None:
    shown = forecast(two_ways(), 6)
    assert not shown.shared
    slots = {stage.name: stage.slots for stage in shown.stages}
    assert sum(slots.values()) == 6
    assert slots["keep"] >= 2
    for stage in two_ways().stages:
        rate = 100.0 if stage.name == "alert" else 1000.0
        alone = BulkService(rate, stage.fixed_seconds, stage.row_seconds)
        assert seconds(shown)[stage.name] == pytest.approx(alone.sojourn_seconds(slots[stage.name]))


def test_a_sink_gets_what_all_stages_on_its_way_take() -> None:
    shown = forecast(two_ways(), 6)
    alerts, kept = shown.sinks
    assert alerts.seconds == pytest.approx(seconds(shown)["read"] + seconds(shown)["alert"])
    assert kept.seconds == pytest.approx(seconds(shown)["read"] + seconds(shown)["keep"])


def test_fewer_slots_than_stages_are_shared() -> None:
    shown = forecast(two_ways(rate=100.0), 2)
    assert shown.shared
    assert shown.helps == "the pool"
    assert shown.gain_seconds > 0.0
    own = forecast(two_ways(rate=100.0), 3)
    assert all(seconds(shown)[name] >= seconds(own)[name] for name in seconds(own))


def test_a_wide_stage_has_its_own_slots_where_small_ones_share_the_others() -> None:
    shown = forecast(two_ways(), 3)
    assert shown.shared == 1
    assert {stage.name: stage.model for stage in shown.stages} == {
        "read": "pool",
        "alert": "pool",
        "keep": "bulk",
    }
    assert shown.stages[2].slots == 2
    more = forecast(two_ways(), 4)
    assert (more.shared, more.stages[2].slots) == (1, 3)
    assert seconds(more)["keep"] < seconds(shown)["keep"]
    assert seconds(shown)["read"] > seconds(forecast(two_ways(), 6))["read"]
    assert shown.sojourn_seconds == pytest.approx(
        seconds(shown)["read"] + 0.1 * seconds(shown)["alert"] + seconds(shown)["keep"]
    )


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("bulk", BulkService(100.0, 0.05, 0.01)),
        ("dealt", DealtTurns(100.0, 0.05, 0.01)),
        ("mmk", MMk(100.0, 80.0)),
        ("gigk", GIGk(100.0, 80.0, service_scv=0.0)),
    ],
)
def test_a_stage_is_told_of_by_its_model(model: str, expected: StageModel) -> None:
    stage = PlanStage("s", 0.05, 0.005, rows_per_second=100.0, slots=2, seen_row_seconds=0.00625, model=model)
    shown = forecast(Workflow((stage,), (Product("out", "s", inf),)), 3)
    assert shown.stages[0].model == model
    assert shown.stages[0].seconds == pytest.approx(expected.sojourn_seconds(shown.stages[0].slots))


def test_by_models_of_rows_an_input_pays_for_each_of_its_rows() -> None:
    def many(model: str) -> Forecast:
        stages = (
            PlanStage("split", 0.0, 0.001, rows_per_second=10.0, model=model),
            PlanStage("each", 0.0, 0.001, {"split": 3.0}, model=model),
        )
        return forecast(Workflow(stages, (Product("out", "each", inf),)), 4)

    for model, rows in (("mmk", 3.0), ("bulk", 1.0)):
        shown = many(model)
        by_stage = seconds(shown)["split"] + rows * seconds(shown)["each"]
        assert shown.sojourn_seconds == pytest.approx(by_stage)


def test_the_bottleneck_tells_how_much_more_could_come() -> None:
    shown = forecast(two_ways(), 6)
    assert shown.bottleneck == "keep"
    keep = next(stage for stage in shown.stages if stage.name == "keep")
    assert shown.bottleneck_rate == pytest.approx(keep.slots / 1.2)


def test_what_more_slots_cannot_hold_is_refused_with_the_numbers() -> None:
    with pytest.raises(SlotError) as error:
        forecast(two_ways(), 1)
    assert str(error.value) == (
        "the stages must have at least 3 slots, got 1, of which their rows keep 1.32 busy: queues would grow "
        "without end; needed: more slots, or 75% of the load"
    )


def test_no_fewer_slots_meet_the_target() -> None:
    workflow = two_ways(target=0.25)
    shown = fewest_slots(workflow)
    assert shown.met
    assert not _met(workflow, shown.slots - 1)


def test_a_target_below_the_work_itself_is_refused_with_what_could_be_met() -> None:
    with pytest.raises(SlotError, match=r"got 0\.05 s where even 100 slots lead to 0\.\d+ s: its rows"):
        fewest_slots(two_ways(target=0.05), 100)


def test_rows_that_come_round_count_at_every_round() -> None:
    workflow = Workflow(
        (
            PlanStage("enter", 0.02, 0.0, rows_per_second=100.0),
            PlanStage("step", 0.02, 0.001, {"enter": 1.0}, loops={"step": 0.5}),
        ),
        (Product("out", "step", inf),),
    )
    shown = forecast(workflow, 4)
    assert shown.stages[1].rows_per_second == pytest.approx(200.0)
    assert shown.sojourn_seconds == pytest.approx(seconds(shown)["enter"] + 2.0 * seconds(shown)["step"])
    assert shown.sinks[0].seconds == pytest.approx(shown.sojourn_seconds)


def test_a_sink_behind_a_loop_waits_for_all_rounds_through_all_of_its_stages() -> None:
    workflow = Workflow(
        (
            PlanStage("merge", 0.02, 0.0001, loops={"more": 1.0}, rows_per_second=100.0),
            PlanStage("step", 0.02, 0.0001, {"merge": 1.0}),
            PlanStage("more", 0.02, 0.0001, {"step": 0.75}),
            PlanStage("done", 0.02, 0.0001, {"step": 0.25}),
        ),
        (Product("out", "done", inf),),
    )
    shown = forecast(workflow, 8)
    # A row goes through the loop three times more before it is done, once the last part of it is left out.
    own = seconds(shown)
    expected = 4 * (own["merge"] + own["step"]) + 3 * own["more"] + own["done"]
    assert shown.sinks[0].seconds == pytest.approx(expected)
    assert shown.sojourn_seconds == pytest.approx(expected)


def test_costs_learned_on_several_slots_are_those_of_one_for_each() -> None:
    def alone(row_seconds: float, slots: int) -> Workflow:
        stage = PlanStage("s", 0.05, row_seconds, rows_per_second=100.0, slots=slots)
        return Workflow((stage,), (Product("out", "s", inf),))

    assert forecast(alone(0.002, 4), 3) == forecast(alone(0.008, 1), 3)


def test_without_load_nothing_is_told() -> None:
    with pytest.raises(PenstockError, match="must have rows that come from outside, got none"):
        forecast(two_ways(rate=0.0), 4)
