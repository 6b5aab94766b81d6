"""How long it takes to place slots (table II of DRS)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from statistics import fmean

from penstock.bench.result import BenchResult, Table, at_most
from penstock.bench.stats import Summary, summary
from penstock.model import DealtCost, DealtTurns, Inflow, MMk, Network, NetworkStage, TurnNetwork
from penstock.model.flow import OUTSIDE, Read
from penstock.plan import assign_processors, min_processors
from penstock.plan.slot_errors import TargetOutOfReachError
from penstock.workloads.drs import TOPOLOGIES

RUNS, TURN_RUNS = 30, 5
TABLE_II = (12, 24, 48, 96, 192)
LARGE_SLOTS, LARGE_STAGES = 10_000, 100
POOL_SLOTS = 22
TIGHT = 0.9
"""Of what all slots lead to: a target that is out of reach, which is the longest search there is."""


def planning(result: BenchResult) -> None:
    """Logo detection with up to 192 slots, and a hundred stages with 10,000, by M/M/k.

    Then logo detection by turns of all stages together, as a running engine mostly plans: there each
    allocation is gone through turn by turn, and no mark is set.
    """
    result.put("plan_ms_k22", plan_milliseconds(lambda: logo_detection(POOL_SLOTS), POOL_SLOTS), at_most(1))
    large = plan_milliseconds(lambda: some_network(LARGE_STAGES, 0.8 * LARGE_SLOTS), LARGE_SLOTS)
    result.put("plan_ms_k10000_n100", large, at_most(100))
    result.put("plan_ms_k22_turns", plan_milliseconds(logo_turns, POOL_SLOTS, TURN_RUNS))
    result.put("fewest_ms_k22_turns", summary([_fewest_milliseconds() for _ in range(TURN_RUNS)]))
    taken = {slots: plan_milliseconds(partial(logo_detection, slots), slots) for slots in TABLE_II}
    rows = [[str(slots), f"{each.value:.3f}"] for slots, each in taken.items()]
    result.tables.append(Table("ms to place slots on three stages", ["slots", "ms"], rows))


def plan_milliseconds(make: Callable[[], Network], slots: int, runs: int = RUNS) -> Summary:
    """Of one plan; models are made anew each time, as after a measurement, and so know nothing yet."""
    taken = []
    for _ in range(runs):
        network = make()
        began = time.perf_counter()
        assign_processors(network, slots)
        taken.append(1000 * (time.perf_counter() - began))
    return summary(taken)


def _fewest_milliseconds() -> float:
    target = TIGHT * assign_processors(logo_turns(), POOL_SLOTS).sojourn_seconds
    network, began = logo_turns(), time.perf_counter()
    with suppress(TargetOutOfReachError):
        min_processors(network, target, POOL_SLOTS)
    return 1000 * (time.perf_counter() - began)


def logo_detection(slots: int) -> Network:
    """Three stages that need nine tenths of the slots, but for one."""
    rate = 0.9 * (slots - 1) / (1 / 1.75 + 1 / 1.5)
    return Network(
        (
            NetworkStage("extract", MMk(rate, 1.75)),
            NetworkStage("match", MMk(rate, 1.5)),
            NetworkStage("aggregate", MMk(rate, 100.0 * rate)),
        )
    )


def logo_turns(inputs_per_second: float = 18.0) -> TurnNetwork:
    """As emulated, where a turn itself costs 0.1 s."""
    declared = TOPOLOGIES["vld"].stages
    costs = {name: DealtCost(0.1, each.row_seconds, each.scv) for name, each in declared.items()}
    above = (OUTSIDE, *declared)
    reads = {name: (Read(above[place], 1.0),) for place, name in enumerate(declared)}
    stages = tuple(
        NetworkStage(name, DealtTurns(inputs_per_second, each.fixed_seconds, each.row_seconds, each.scv))
        for name, each in costs.items()
    )
    return TurnNetwork(stages, costs, reads, Inflow(inputs_per_second))


def some_network(stages: int, busy_slots: float, seed: int = 1) -> Network:
    """Stages with shares of the load by chance."""
    chance = random.Random(seed)
    shares = [chance.uniform(0.2, 1.8) for _ in range(stages)]
    scale = busy_slots / stages / fmean(shares)
    made = (
        NetworkStage(f"s{place}", MMk(10.0, 10.0 / (share * scale))) for place, share in enumerate(shares)
    )
    return Network(tuple(made))
