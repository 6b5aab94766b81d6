"""The simulation as a whole: it repeats, loses nothing, and decides as the scheduler does."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import pytest
from tests.simulate.plants import one_stage, pool, simulated

from penstock.model.traffic import EndlessLoopError
from penstock.scheduling.catalog import POLICIES, policy_named
from penstock.scheduling.consumption import AtMost
from penstock.scheduling.policies import Fifo, Llf, TokenShare
from penstock.scheduling.stage_view import StageView
from penstock.simulate import (
    Inflow,
    Node,
    Outcome,
    Plant,
    Renewal,
    Simulation,
    SimulationError,
    SimulationSettings,
    StageSetup,
    Ticks,
    Trace,
    TurnCost,
    WindowSetup,
)
from penstock.simulate.station import Turn


def two_pipelines() -> Plant:
    """An urgent chain with a window and a patient one that fans out, on rows every 100 ms."""
    cost = TurnCost(0.03, 0.0001, scv=0.1)
    stages = (
        StageSetup("u.a", "u", cost, ("u.in",), output="u.a", latency_seconds=0.8, depth=1, selectivity=0.5),
        StageSetup(
            "u.b",
            "u",
            cost,
            ("u.a",),
            sink="out",
            latency_seconds=0.8,
            target_seconds=0.8,
            selectivity=0.01,
            window=WindowSetup(1.0, 1.0),
        ),
        StageSetup("v.a", "v", cost, ("v.in",), output="v.a", latency_seconds=30.0, depth=1),
        StageSetup("v.b", "v", cost, ("v.a",), sink="one", latency_seconds=30.0, target_seconds=30.0),
        StageSetup("v.c", "v", cost, ("v.a",), sink="two", latency_seconds=60.0, target_seconds=60.0),
    )
    inflows = (
        Inflow("u.in", Ticks(1000.0, phase_seconds=0.02), lag_seconds=0.001),
        Inflow("v.in", Ticks(2000.0, phase_seconds=0.05)),
    )
    return Plant(stages, inflows)


def told(outcome: Outcome) -> dict[str, object]:
    sinks = {name: sink.latency.to_json() for name, sink in outcome.sinks.items()}
    return {"sinks": sinks, "stages": dict(outcome.stages), "events": outcome.events}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_repeats_under_its_seed_and_loses_no_row_under_any_policy(policy: str) -> None:
    plant = two_pipelines()
    turns: list[Turn] = []
    simulation = Simulation(
        plant, SimulationSettings.on_slots(policy_named(policy), 2, seed=3, on_turn=turns.append)
    )
    outcome = simulation.run(40.0)
    assert told(outcome) == told(simulated_again(plant, policy))
    for name, offered in (("u.a", 1000 * 40), ("v.a", 2000 * 40)):
        station = simulation.stations[name]
        running = sum(turn.taken.rows.count for turn in station.running.values())
        unseen = offered - station.inbox.rows_offered
        assert 0 <= unseen <= 2000
        assert station.rows_in + running + station.inbox.rows_waiting == station.inbox.rows_offered
    for reader in ("v.b", "v.c"):
        assert simulation.stations[reader].inbox.rows_offered == simulation.stations["v.a"].rows_out
    assert outcome.stages["u.a"].rows_out == pytest.approx(0.5 * outcome.stages["u.a"].rows_in, abs=1)
    assert outcome.turns == len(turns)
    assert 0.0 < outcome.slots_busy <= 1.0


def simulated_again(plant: Plant, policy: str) -> Outcome:
    return Simulation(plant, SimulationSettings.on_slots(policy_named(policy), 2, seed=3)).run(40.0)


@dataclass(frozen=True)
class LooksLikeFifo:
    """The order of Fifo from someone of whom the simulation knows nothing: contexts are made for it."""

    def priority(self, stage: StageView, now: float) -> float:
        assert stage.context is not None
        return stage.ready_since

    def reason(self, stage: StageView) -> str:
        return "waited longest"


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_what_is_spared_for_simple_policies_changes_nothing(slots: int) -> None:
    plant = two_pipelines()
    one, other = (
        Simulation(plant, SimulationSettings.on_slots(policy, slots, seed=1)).run(30.0)
        for policy in (Fifo(), LooksLikeFifo())
    )
    for name in one.stages:
        assert one.stages[name].turns == other.stages[name].turns
        assert one.stages[name].slot_seconds == pytest.approx(other.stages[name].slot_seconds)
    for name in one.sinks:
        assert one.sinks[name].latency.quantile(0.99) == pytest.approx(
            other.sinks[name].latency.quantile(0.99)
        )


def test_an_urgent_pipeline_is_in_time_by_laxity_and_not_in_order_of_arrival() -> None:
    urgent = StageSetup(
        "u.s", "u", TurnCost(0.02), ("u",), sink="out", latency_seconds=0.3, target_seconds=0.3
    )
    patient = tuple(
        StageSetup(f"b{n}.s", f"b{n}", TurnCost(0.01, 0.001), (f"b{n}",), sink="out", latency_seconds=60.0)
        for n in range(3)
    )
    inflows = (Inflow("u", Ticks(10.0, 0.5)), *(Inflow(f"b{n}", Ticks(310.0, 1.0)) for n in range(3)))
    plant = Plant((urgent, *patient), inflows)
    share = {
        name: simulated(plant, 1, 120.0, policy_named(name)).sinks["u.out"].share_in_time
        for name in ("llf", "fifo")
    }
    assert share["llf"] > 0.95
    assert share["fifo"] < 0.8


def test_a_window_s_result_leaves_with_the_turn_that_completes_its_frontier() -> None:
    closed: list[tuple[float, tuple[float, ...]]] = []
    plant = one_stage(
        TurnCost(0.05),
        Trace((0.9, 1.2, 1.9, 2.3), (10.0, 10.0, 10.0, 10.0)),
        selectivity=0.1,
        window=WindowSetup(1.0, 1.0),
    )
    settings = SimulationSettings.on_slots(
        Llf(), 1, on_turn=lambda turn: closed.append((round(turn.ends_at, 6), turn.windows))
    )
    outcome = Simulation(plant, settings).run(10.0)
    # What has come does not close its window: the first row beyond it does.
    assert [each for each in closed if each[1]] == [(1.25, (1.0,)), (2.35, (2.0,))]
    latency = outcome.sinks["p.out"].latency
    assert latency.greatest == pytest.approx(0.05)
    assert latency.count == pytest.approx(4.0)


def test_a_window_waits_for_the_slowest_of_its_producers_and_for_late_rows() -> None:
    closed: list[tuple[float, tuple[float, ...]]] = []
    stage = StageSetup("p.s", "p", TurnCost(0.01), ("in",), sink="out", window=WindowSetup(2.0, 1.0, 0.5))
    inflows = (
        Inflow("in", Trace((0.5, 1.0, 1.5, 2.0, 3.0), (1.0,) * 5), "quick"),
        Inflow("in", Trace((0.7, 1.4, 2.9), (1.0,) * 3), "slow"),
    )
    settings = SimulationSettings.on_slots(
        Fifo(), 1, on_turn=lambda turn: closed.append((round(turn.ends_at, 6), turn.windows))
    )
    Simulation(Plant((stage,), inflows), settings).run(8.0)
    # Ends 1 and 2 need 1.5 and 2.5 of both: the quick one is there at 3.0, the slow one at 2.9.
    assert [each for each in closed if each[1]] == [(2.91, (1.0,)), (3.01, (2.0,))]


def test_a_window_over_windows_closes_with_the_results_of_the_first() -> None:
    stages = (
        StageSetup(
            "p.a", "p", TurnCost(0.01), ("in",), output="q", window=WindowSetup(1.0, 1.0), selectivity=0.1
        ),
        StageSetup(
            "p.b", "p", TurnCost(0.01), ("q",), sink="out", window=WindowSetup(2.0, 2.0), selectivity=0.1
        ),
    )
    plant = Plant(stages, (Inflow("in", Ticks(100.0, 0.1, phase_seconds=0.05)),))
    latency = simulated(plant, 2, 61.0, Llf()).sinks["p.out"].latency
    # From the arrival of the row that completes the first window: two turns, however long the second waits.
    assert latency.quantile(0.5) == pytest.approx(0.02, abs=0.002)


def test_rows_go_round_a_loop_until_they_have_left_it() -> None:
    stages = (
        StageSetup("p.step", "p", TurnCost(0.01), ("in", "back"), output="back", selectivity=0.5),
        StageSetup("p.end", "p", TurnCost(0.01), ("back",), sink="out"),
    )
    plant = Plant(stages, (Inflow("in", Ticks(100.0)),))
    outcome = simulated(plant, 2, 100.0)
    assert plant.rates["p.step"] == pytest.approx(200.0)
    assert outcome.stages["p.step"].rows_in / outcome.seconds == pytest.approx(200.0, rel=0.02)
    endless = Plant((StageSetup("p.s", "p", TurnCost(0.01), ("in",), output="in"),), plant.inflows)
    with pytest.raises(EndlessLoopError):
        Simulation(endless, SimulationSettings.on_slots(Fifo(), 1))


def test_turns_take_no_more_rows_than_consumption_allows() -> None:
    sizes: list[int] = []
    plant = one_stage(TurnCost(0.05, 0.0001), Ticks(1000.0))
    settings = SimulationSettings.on_slots(
        Fifo(), 1, consumption=AtMost(70), on_turn=lambda turn: sizes.append(turn.taken.rows.count)
    )
    Simulation(plant, settings).run(20.0)
    assert max(sizes) == 70


def test_tenants_get_their_shares_of_the_tokens() -> None:
    stages = tuple(
        StageSetup(
            f"{name}.s", name, TurnCost(0.005, 0.001), (name,), sink="out", share=share, profiled_rows=100
        )
        for name, share in (("a", 0.2), ("b", 0.8))
    )
    plant = Plant(stages, tuple(Inflow(name, Ticks(1500.0, 0.05)) for name in "ab"))
    done = simulated(plant, 1, 200.0, TokenShare(rows_per_second=950.0)).stages
    total = done["a.s"].rows_in + done["b.s"].rows_in
    assert done["a.s"].rows_in / total == pytest.approx(0.2, abs=0.05)


def test_slots_that_join_take_the_backlog_off_and_those_that_leave_let_turns_end() -> None:
    plant = pool(4, TurnCost(0.1), 100.0)
    nodes = (Node("stays", 1), Node("comes", 3, joins_at=50.0, leaves_at=100.0))
    ends: list[tuple[float, int]] = []
    simulation = Simulation(
        plant,
        SimulationSettings(
            Fifo(), nodes, on_turn=lambda turn: ends.append((turn.grant.at, turn.grant.slots))
        ),
    )
    outcome = simulation.run(150.0)
    before, during, after = (sum(low <= at < low + 49.0 for at, _ in ends) for low in (0.0, 50.5, 100.5))
    assert during == pytest.approx(4 * before, rel=0.05)
    assert after == pytest.approx(before, rel=0.05)
    assert outcome.slots_busy == pytest.approx(1.0, abs=0.02)


def test_rows_of_turns_on_a_node_that_crashes_wait_again_and_come_once() -> None:
    plant = one_stage(TurnCost(2.0), Trace((1.0,), (10.0,)))
    nodes = (Node("first", 1, joins_at=0.0, leaves_at=2.0, crashes=True), Node("second", 1, joins_at=1.5))
    for policy in (Fifo(), Llf()):
        outcome = Simulation(plant, SimulationSettings(policy, nodes)).run(10.0)
        latency = outcome.sinks["p.out"].latency
        # Begun at 1.0, broken off at 2.0, begun again at once on the other node.
        assert (latency.count, latency.greatest) == (10.0, pytest.approx(3.0))
        assert outcome.stages["p.s"].slot_seconds == pytest.approx(3.0)


def test_wide_turns_are_shorter_and_narrow_pools_give_what_they_have() -> None:
    plant = one_stage(TurnCost(0.1, 0.01), Trace((1.0,), (100.0,)), slots=4)
    seconds = [simulated_greatest(plant, slots) for slots in (1, 2, 4)]
    assert seconds == pytest.approx([1.1, 0.6, 0.35])


def simulated_greatest(plant: Plant, slots: int) -> float:
    settings = SimulationSettings.on_slots(Fifo(), slots, grain_seconds=inf)
    return Simulation(plant, settings).run(10.0).sinks["p.out"].latency.greatest


def test_arrivals_are_the_same_under_every_policy_and_differ_between_seeds() -> None:
    plant = one_stage(TurnCost(0.001), Renewal(50.0))
    counts = {
        (name, seed): simulated(plant, 1, 50.0, policy_named(name), seed=seed).stages["p.s"].rows_in
        for name in ("fifo", "llf")
        for seed in (1, 2)
    }
    assert counts["fifo", 1] == counts["llf", 1] != counts["fifo", 2]


def test_what_cannot_be_simulated_is_refused() -> None:
    stage = StageSetup("p.s", "p", TurnCost(0.1), ("in",), sink="out")
    with pytest.raises(SimulationError) as error:
        Plant((stage,), ())
    assert str(error.value) == ("stage 'p.s' must read a queue that rows come to, got in: it would never run")
    with pytest.raises(SimulationError, match="rows must come to a queue that a stage reads, got 'other'"):
        Plant((stage,), (Inflow("in", Ticks(1.0)), Inflow("other", Ticks(1.0))))
    with pytest.raises(SimulationError, match="got 2 stages with 1 names"):
        Plant((stage, stage), (Inflow("in", Ticks(1.0)),))
    plant = Plant((stage,), (Inflow("in", Ticks(1.0)),))
    with pytest.raises(SimulationError, match="a pool must have a node at any time, got none at 5 s"):
        Simulation(plant, SimulationSettings(Fifo(), (Node("n", 1, leaves_at=5.0),)))
    with pytest.raises(SimulationError, match="a simulation must last longer than its warm-up"):
        Simulation(plant, SimulationSettings.on_slots(Fifo(), 1)).run(5.0, 5.0)
    with pytest.raises(SimulationError, match=r"scv of a turn must be 0 or more and finite, got -1\.0"):
        TurnCost(0.1, scv=-1.0)
