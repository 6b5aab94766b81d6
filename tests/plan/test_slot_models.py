from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.measure.inputs import InputFigures
from penstock.measure.moments import StageMoments
from penstock.measure.slot_figures import SlotFigures, StageSlotFigures
from penstock.model import MMk, Network, TurnNetwork
from penstock.plan.slot_models import StageModels, measured, models_of

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
