"""The real planner of batches and the real controller of slots, on a simulation."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.simulate.plants import one_stage

from penstock import Pipeline, sinks, sources
from penstock.measure.profiles import StageProfile
from penstock.plan import Rescale, SlotController, SlotSettings
from penstock.plan.triggers import Every, EveryProduct
from penstock.scheduling.consumption import Planned
from penstock.scheduling.policies import BatchIt, Fifo
from penstock.simulate import (
    Inflow,
    Plant,
    Renewal,
    Simulation,
    SimulationError,
    SimulationSettings,
    StageSetup,
    Steps,
    Ticks,
    TurnCost,
)
from penstock.simulate.controls import BatchPlanning, SlotControl
from penstock.simulate.pipelines import plant_of

SINK = sinks.Callback(lambda table, batch: None)


def two_products() -> Plant:
    pipeline = Pipeline("p", fuse=False)
    source = sources.Replay(pa.table({"id": [1]}), 500.0)
    read = pipeline.source("in", source).operator("read", lambda rows: rows)
    read.operator("alert", lambda rows: rows).sink("alerts", SINK, latency="500ms")
    read.operator("keep", lambda rows: rows).sink("kept", SINK, latency="30s")
    known = StageProfile(0.001, 1.0, 0.02, 0.0002, turns=50, mean_seconds=0.05, most_rows=5000)
    return plant_of([pipeline], lambda name: known)


@pytest.mark.parametrize("trigger", [None, Every(10.0), EveryProduct()])
def test_batches_are_planned_and_turns_take_them(trigger: Every | EveryProduct | None) -> None:
    planning, taken = BatchPlanning(trigger), []
    settings = SimulationSettings.on_slots(
        BatchIt(),
        2,
        consumption=Planned(),
        controls=(planning,),
        on_turn=lambda turn: taken.append((turn.station.name, turn.grant.at, turn.taken.rows.count)),
    )
    outcome = Simulation(two_products(), settings).run(15.0 if trigger == EveryProduct() else 60.0)
    plan = planning.changes[-1]
    assert set(plan.rows) == {"p.read", "p.alert", "p.keep"}
    assert plan.rows["p.keep"] > 5 * plan.rows["p.alert"]
    late = [rows for name, at, rows in taken if name == "p.keep" and at > 7.0]
    assert sum(late) / len(late) > 2 * plan.rows["p.alert"]
    assert outcome.sinks["p.alerts"].share_in_time > 0.99
    expected = {"Conditional": 4, "Every": 6, "EveryProduct": 10_000}
    assert len(planning.changes) <= expected[type(trigger).__name__ if trigger else "Conditional"]


def test_plans_need_pipelines() -> None:
    plant = one_stage(TurnCost(0.1), Ticks(10.0))
    settings = SimulationSettings.on_slots(BatchIt(), 1, controls=(BatchPlanning(),))
    with pytest.raises(
        SimulationError, match="batches must be planned for pipelines, got stages without any"
    ):
        Simulation(plant, settings).run(5.0)


def test_slots_follow_a_rate_that_doubles_and_then_rest() -> None:
    stages = (
        StageSetup("p.sift", "p", TurnCost(0.5, scv=1.0), ("in",), output="q", lanes=4),
        StageSetup("p.match", "p", TurnCost(0.25, scv=1.0), ("q",), sink="out", lanes=2),
    )
    plant = Plant(stages, (Inflow("in", Steps(Renewal(5.0), ((1200.0, 2.0),))),))
    controller = SlotController(
        SlotSettings("fewest-slots", most_slots=20, target_seconds=1.5, relaxed_seconds=0.3, window=3)
    )
    control = SlotControl(controller, every_seconds=60.0)
    simulation = Simulation(plant, SimulationSettings.on_slots(Fifo(), 20, controls=(control,), seed=1))
    simulation.run(3600.0)
    changes = [(at, each) for at, each in control.decisions if isinstance(each, Rescale)]
    assert all(at > 1200.0 for at, _ in changes)
    assert 1 <= len(changes) <= 2
    slots = {name: station.lanes for name, station in simulation.stations.items()}
    assert slots["p.sift"] >= 6
    assert slots["p.sift"] > slots["p.match"] >= 3


def test_a_stage_with_turns_is_given_wider_ones() -> None:
    plant = one_stage(TurnCost(0.1, 0.0018), Ticks(500.0), slots=1)
    settings = SlotSettings("least-latency", most_slots=4, between_seconds=60.0)
    control = SlotControl(SlotController(settings), every_seconds=20.0)
    simulation = Simulation(plant, SimulationSettings.on_slots(Fifo(), 4, controls=(control,)))
    simulation.run(600.0)
    assert simulation.stations["p.s"].slots == 4
    assert [each.kind for _, each in control.decisions if isinstance(each, Rescale)] == ["more"]
