from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.measure.inputs import InputFigures
from penstock.measure.moments import StageMoments
from penstock.measure.slot_figures import SlotFigures, StageSlotFigures
from penstock.model import MMk, Network, TurnNetwork
from penstock.plan.controller import SlotController
from penstock.plan.controller_state import Rescale, SlotObservation, SlotSettings, SlotState
from penstock.plan.slot_models import POOL, StageModels, idles, measured, models_of
from penstock.plan.slots import min_processors

INPUTS = InputFigures(10.0, 100, 1.0, 0)


def stage(rate: float = 10.0, sojourn: float = 0.5, **other: float) -> StageSlotFigures:
    moments = StageMoments(rate, 20.0, 1.0, 1.0, intervals=1, samples=10)
    slots = int(other.pop("slots", 1))
    costs = {"fixed_seconds": 0.1, "row_seconds": 0.05, "segment_seconds": 0.1, **other}
    return StageSlotFigures(moments, slots, sojourn, **costs)  # type: ignore[arg-type]


def figures(**stages: StageSlotFigures) -> SlotFigures:
    return SlotFigures(60.0, 10.0, INPUTS, stages)


def test_the_model_that_was_closest_stands_for_the_stage() -> None:
    models, said = StageModels(), models_of(stage())
    measured = said["mmk"].sojourn_seconds(1)
    for _ in range(3):
        models.learn(figures(s=stage(sojourn=measured)))
    assert models.choices({"s": 1})["s"].model in ("gigk", "mmk")
    network = models.network(figures(s=stage(sojourn=measured)))
    assert isinstance(network, Network)
    assert network.sojourn_seconds({"s": 1}) == pytest.approx(MMk(10.0, 20.0).sojourn_seconds(1))


def test_rows_weigh_by_rate_and_turns_by_turns() -> None:
    by_rows, by_turns = StageModels(only="mmk"), StageModels(only="bulk")
    seen = figures(s=stage(rate=15.0, turns_per_input=3.0))
    weights = []
    for models in (by_rows, by_turns):
        network = models.network(seen)
        assert isinstance(network, Network)
        weights.append(network.stages[0].weight)
    assert weights == [1.5, 3.0]


def test_without_input_or_with_a_stage_that_is_not_known_there_is_no_network_but_a_reason() -> None:
    unknown = StageSlotFigures(StageMoments(), 1)
    assert StageModels().network(figures(s=stage(), t=unknown)) == "nothing is known of t yet"
    idle = SlotFigures(60.0, 0.0, INPUTS, {"s": stage()})
    assert StageModels().network(idle) == "nothing came from outside"
    assert StageModels().network(figures()) == "no stage whose slots could change"


def turned(rows: int, k: int, count: int = 60) -> tuple[tuple[int, int, int, float], ...]:
    """Turns of 1 to `rows` rows that cost 0.05 s and 0.2 s for each round."""
    sizes = [1 + number % rows for number in range(count)]
    return tuple((size, size, k, 0.05 + 0.2 * -(-size // k)) for size in sizes)


def together_with(**other: float) -> SlotFigures:
    stages = {
        name: stage(sojourn=0.8, turns=turned(6, 4), slots=4, **other)  # type: ignore[arg-type]
        for name in ("read", "match")
    }
    made = {"read": {"": 1.0}, "match": {"read": 1.0}}
    return SlotFigures(60.0, 10.0, INPUTS, stages, made)


def test_all_stages_go_together_once_their_turns_and_ways_are_known() -> None:
    models, seen = StageModels(), together_with()
    models.learn(seen)
    network = models.network(seen)
    assert isinstance(network, TurnNetwork)
    assert network.costs["match"].row_seconds == pytest.approx(0.2, rel=0.1)
    assert models.choices({"read": 4})["read"].model == "turns"
    assert isinstance(StageModels("mmk").network(seen), Network)
    assert not isinstance(StageModels("mmk").network(seen), TurnNetwork)


def test_inputs_that_part_are_measured_by_what_rows_stayed() -> None:
    straight = together_with()
    assert measured(straight) == (INPUTS.mean_seconds, INPUTS.inputs_done)
    parted = replace(straight, rows_made={"read": {"": 0.5}, "match": {"": 0.5}})
    seconds, done = measured(parted)
    assert seconds == pytest.approx(0.8)
    assert done > 0


def test_inputs_that_are_read_twice_are_measured_until_both_readers_are_done() -> None:
    forked = replace(
        together_with(),
        rows_made={"read": {"": 1.0}, "match": {"": 1.0}},
        inputs=replace(INPUTS, mean_seconds=1.5),
    )
    assert measured(forked) == (1.5, INPUTS.inputs_done)
    network = StageModels("bulk").network(forked)
    assert isinstance(network, Network)
    assert [each.weight for each in network.stages] == [1.0, 1.0]


def test_a_few_inputs_that_part_are_a_measurement_too() -> None:
    parted = replace(
        together_with(),
        rows_made={"read": {"": 0.5}, "match": {"": 0.5}},
        inputs=InputFigures(0.1, 0, 0.0, 0),
    )
    assert measured(parted) == (pytest.approx(0.8), 1)


def test_sources_bring_rows_to_their_readers_alone() -> None:
    seen = replace(
        together_with(),
        rows_made={"read": {"@many": 1.0}, "match": {"@few": 1.0}},
        outside_rows_per_second=10.0,
        outside={"@many": 9.5, "@few": 0.5},
    )
    network = StageModels().network(seen)
    assert isinstance(network, TurnNetwork)
    assert {each.name: each.weight for each in network.stages} == pytest.approx({"read": 0.95, "match": 0.05})
    assert network.stages[1].model.busy_slots == pytest.approx(0.5 * 0.2, rel=0.1)
    assert network.least_slots == {"read": 2, "match": 1}


def test_stages_by_themselves_are_judged_by_the_model_that_was_in_use() -> None:
    models, seen = StageModels(), together_with()
    said = {name: models_of(each)["mmk"].sojourn_seconds(each.slots) for name, each in seen.stages.items()}
    exact = {name: replace(each, sojourn_seconds=said[name]) for name, each in seen.stages.items()}
    models.learn(replace(seen, stages=exact))
    # M/M/k was right, but nobody had chosen it before.
    reason = models.choices({"read": 4})["read"].reason
    assert "alone by 0%" not in reason
    assert "alone was off by 0%" not in reason


def test_fewer_slots_than_stages_are_a_pool_whose_error_is_learned() -> None:
    models = StageModels(most_slots=1)
    light = {"fixed_seconds": 0.01, "row_seconds": 0.01}
    stages = {name: stage(sojourn=0.1, **light) for name in ("read", "match")}
    seen = SlotFigures(60.0, 10.0, INPUTS, stages, {"read": {"": 1.0}, "match": {"read": 1.0}})
    network = models.network(seen)
    assert isinstance(network, Network)
    assert [each.name for each in network.stages] == [POOL]
    expected = network.sojourn_seconds({POOL: 1})
    assert 0.04 < expected < 0.2
    models.learn(seen)
    choice = models.choices(stages)["match"]
    assert (choice.model, choice.error) == (POOL, pytest.approx(abs(expected - 0.2) / 0.2))
    assert choice.reason == f"pool was off by {choice.error:.0%}, over 1 measurement"


def test_a_stage_with_more_than_a_slot_of_work_does_not_fit_a_pool() -> None:
    stages = {"read": stage(fixed_seconds=0.01, row_seconds=0.2), "match": stage()}
    said = StageModels(most_slots=1).network(figures(**stages))
    assert said == (
        "stage 'read' of a shared pool must have less than 1 s of work a second, got 2 s: "
        "its turns run on one slot; it needs slots of its own"
    )


def quiet() -> SlotFigures:
    """Nothing comes any more."""
    idle = {
        name: replace(each, moments=replace(each.moments, rows_per_second=0.0))
        for name, each in together_with().stages.items()
    }
    made = {"read": {"": 1.0}, "match": {"read": 1.0}}
    return SlotFigures(60.0, 0.0, InputFigures(0.0, 0, 0.0, 0), idle, made)


def test_a_pipeline_that_idles_needs_one_slot_for_each_stage() -> None:
    seen = quiet()
    assert idles(seen)
    assert measured(seen) == (0.0, 1)
    network = StageModels().network(seen)
    assert isinstance(network, Network)
    plan = min_processors(network, 1.0)
    assert plan.slots == {"read": 1, "match": 1}
    assert plan.sojourn_seconds == pytest.approx(2 * (0.1 + 0.05))
    assert not idles(replace(seen, inputs=InputFigures(0.0, 0, 0.0, 1)))


def test_a_controller_gives_back_the_slots_of_a_pipeline_that_idles() -> None:
    settings = SlotSettings(
        "fewest-slots",
        8,
        target_seconds=2.0,
        relaxed_seconds=0.5,
        between_seconds=0.0,
        scale_down_seconds=30.0,
    )
    controller, state = SlotController(settings), SlotState({"read": 4, "match": 4}, 0.0)
    models, decisions = StageModels(most_slots=8), []
    for look in range(8):
        network = models.network(quiet())
        assert isinstance(network, Network)
        seconds, done = measured(quiet())
        seen = SlotObservation(60.0 + 10.0 * look, network, state.slots, seconds, done, quiet().surge)
        step = controller.step(state, seen)
        state = step.state
        decisions.append(step.decision)
    assert state.slots == {"read": 1, "match": 1}
    assert [type(each) for each in decisions].count(Rescale) == 1
