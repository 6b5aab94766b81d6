"""All stages together, against turns that are simulated row by row."""

from __future__ import annotations

import random
from math import inf
from statistics import fmean

import pytest

from penstock.model import DealtCost, DealtTurns, Inflow, NetworkStage, TurnNetwork
from penstock.model.flow import Read
from penstock.model.turn_fit import MeasuredTurn, fitted, fitted_together
from penstock.plan.slot_errors import TargetOutOfReachError
from penstock.plan.slots import assign_processors, judge, min_processors

RATE = 10.0
COSTS = {
    "parse": DealtCost(0.06, 0.1, 0.5),
    "enrich": DealtCost(0.06, 0.2, 0.5),
    "store": DealtCost(0.06, 0.05),
}
NAMES = tuple(COSTS)


def chain(fixed_share: float = 1.0) -> TurnNetwork:
    """By themselves the stages have that share of the fixed cost: with less, they promise too much."""
    above = ("", *NAMES)
    reads = {name: (Read(above[place], 1.0),) for place, name in enumerate(NAMES)}
    alone = tuple(
        NetworkStage(name, DealtTurns(RATE, fixed_share * cost.fixed_seconds, cost.row_seconds, cost.scv))
        for name, cost in COSTS.items()
    )
    return TurnNetwork(alone, COSTS, reads, Inflow(RATE, scv=1 / 12))


def slots(*each: int) -> dict[str, int]:
    return dict(zip(NAMES, each, strict=True))


def turn_seconds(cost: DealtCost, rows: int, k: int, chance: random.Random) -> float:
    tasks = [0.0] * k
    for row in range(rows):
        drawn = chance.gammavariate(1.0 / cost.scv, cost.scv) if cost.scv else 1.0
        tasks[row % k] += cost.row_seconds * drawn
    return cost.fixed_seconds + max(tasks)


def simulated(given: dict[str, int], seconds: float = 600.0) -> float:
    """Stage after stage: when what the one above wrote came, and when each row of it left."""
    chance, now, rows = random.Random(3), 0.0, []
    while now < seconds:
        now += chance.uniform(0.5, 1.5) / RATE
        rows.append((now, now))
    for name in NAMES:
        end, first, left = 0.0, 0, []
        while first < len(rows):
            begin = max(end, rows[first][1])
            last = first
            while last < len(rows) and rows[last][1] <= begin:
                last += 1
            end = begin + turn_seconds(COSTS[name], last - first, given[name], chance)
            left += [(came, end) for came, _ in rows[first:last]]
            first = last
        rows = left
    return fmean(left - came for came, left in rows if came > 20.0)


@pytest.mark.parametrize("given", [(2, 3, 1), (2, 4, 1), (3, 5, 1), (2, 8, 2)])
def test_it_is_near_what_simulated_rows_take(given: tuple[int, ...]) -> None:
    assert chain().sojourn_seconds(slots(*given)) == pytest.approx(simulated(slots(*given)), rel=0.12)


def test_slots_of_one_stage_change_what_rows_stay_at_the_next() -> None:
    few, many = (chain().stage_seconds(slots(2, k, 1)) for k in (3, 6))
    assert many["store"] < 0.9 * few["store"]
    assert not chain().separable


def test_a_stage_that_cannot_keep_up_has_no_end() -> None:
    assert chain().sojourn_seconds(slots(1, 4, 1)) == inf
    assert chain().scaled(0.5).sojourn_seconds(slots(1, 4, 1)) < inf


def test_slots_are_moved_from_where_the_stages_by_themselves_would_have_them() -> None:
    network = chain()
    plan = assign_processors(network, 9)
    others = [slots(a, 9 - a - b, b) for a in (2, 3, 4) for b in (1, 2, 3)]
    assert plan.sojourn_seconds <= 1.01 * min(network.sojourn_seconds(each) for each in others)
    fewest = min_processors(network, 1.2 * plan.sojourn_seconds)
    assert fewest.sojourn_seconds <= 1.2 * plan.sojourn_seconds
    assert fewest.total <= 9


def test_rows_of_two_sources_go_to_those_that_read_them() -> None:
    reads = {"parse": (Read("@many", 1.0),), "enrich": (Read("@few", 1.0),), "store": (Read("parse", 1.0),)}
    sources = {"@many": 9.5, "@few": 0.5}
    rates = {"parse": 9.5, "enrich": 0.5, "store": 9.5}
    alone = tuple(
        NetworkStage(name, DealtTurns(rates[name], cost.fixed_seconds, cost.row_seconds, cost.scv))
        for name, cost in COSTS.items()
    )
    network = TurnNetwork(alone, COSTS, reads, Inflow(10.0, scv=0.5, sources=sources))
    found = network.stage_seconds(slots(2, 1, 1))
    # A row now and then, by itself, on one slot.
    assert found["enrich"] == pytest.approx(0.06 + 0.2, rel=0.25)
    assert found["parse"] > 0.06 + 0.1


def test_what_a_plan_says_of_stages_and_further_slots_is_of_the_turns_that_its_whole_is_of() -> None:
    network, given = chain(), slots(2, 4, 1)
    plan = judge(network, given)
    assert sum(plan.stage_seconds.values()) == pytest.approx(plan.sojourn_seconds)
    more = {name: network.sojourn_seconds({**given, name: given[name] + 1}) for name in NAMES}
    assert plan.helps_most == min(more, key=lambda name: more[name])
    assert plan.gain_seconds == pytest.approx(plan.sojourn_seconds - min(more.values()))


def test_a_plan_that_cannot_keep_up_is_told_stage_by_stage() -> None:
    plan = judge(chain(), slots(1, 4, 1))
    assert (plan.sojourn_seconds, plan.stage_seconds["parse"]) == (inf, inf)
    assert plan.stage_seconds["store"] < inf
    assert (plan.helps_most, plan.gain_seconds) == ("parse", inf)


def test_a_target_that_all_slots_miss_is_refused_without_a_search_at_each_number() -> None:
    best = assign_processors(chain(fixed_share=0.1), 20)
    network = chain(fixed_share=0.1)
    with pytest.raises(TargetOutOfReachError, match="must be one that 20 slots can meet") as error:
        min_processors(network, 0.98 * best.sojourn_seconds, most_slots=20)
    assert error.value.best is not None
    assert error.value.best.slots == best.slots
    # Beside all 20 only those are looked at that the stages would need by themselves, and one more of each.
    assert len({sum(given) for given in network._known}) <= 4


def test_a_target_that_the_stages_by_themselves_promise_too_early_is_met_by_more_slots() -> None:
    network, target = chain(fixed_share=0.1), assign_processors(chain(), 14).sojourn_seconds
    fewest = min_processors(network, target, most_slots=20)
    assert fewest.sojourn_seconds <= target
    assert fewest.total <= 14


def test_a_spell_tells_of_what_has_come_by_then_and_of_queues_that_grow() -> None:
    network, enough, short = chain(), slots(4, 6, 1), slots(4, 1, 1)
    long_run = network.sojourn_seconds(enough)
    assert network.sojourn_in_spell(enough, 60.0, 10.0) == pytest.approx(long_run, rel=0.05)
    # Of ten rows a second, each of a fifth of one, a slot leaves five behind.
    assert network.sojourn_seconds(short) == inf
    brief, longer = (network.sojourn_in_spell(short, seconds) for seconds in (20.0, 80.0))
    assert 1.0 < brief < longer / 2
    # What came first, when nothing waited, does not count.
    assert network.sojourn_in_spell(short, 80.0, 40.0) > longer


def measured(cost: DealtCost, k: int, most: int, made: float = 1.0) -> list[MeasuredTurn]:
    chance, found = random.Random(5), []
    for _ in range(150):
        rows = chance.randint(1, most)
        out = sum(chance.random() < made for _ in range(rows))
        costing = out if cost.by_made else rows
        found.append(MeasuredTurn(rows, out, k, turn_seconds(cost, costing, k, chance)))
    return found


def test_costs_are_found_in_turns() -> None:
    cost = fitted(measured(DealtCost(0.06, 0.3, 0.1), k=3, most=12), 0.06)
    assert cost is not None
    assert (cost.fixed_seconds, cost.row_seconds) == (
        pytest.approx(0.06, abs=0.03),
        pytest.approx(0.3, rel=0.05),
    )
    assert 0.05 <= cost.scv <= 0.2
    assert fitted(measured(cost, 3, 12)[:5], 0.06) is None


def test_a_stage_that_drops_rows_before_it_works_is_told_by_what_it_makes() -> None:
    cost = fitted(measured(DealtCost(0.06, 0.4, 0.1, by_made=True), k=3, most=8, made=0.5), 0.06)
    assert cost is not None
    assert cost.by_made
    assert cost.row_seconds == pytest.approx(0.4, rel=0.06)


def test_turns_of_one_round_are_told_by_the_fixed_cost_of_a_stage_beside_them() -> None:
    turns = {
        "wide": measured(DealtCost(0.06, 0.3, 0.1), k=10, most=9),
        "light": measured(DealtCost(0.06, 0.01), k=1, most=9),
    }
    costs = fitted_together(turns)
    assert costs is not None
    assert costs["wide"].row_seconds == pytest.approx(0.3, rel=0.06)
