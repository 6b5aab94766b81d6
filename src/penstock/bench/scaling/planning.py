"""How long it takes to place slots (table II of DRS)."""

from __future__ import annotations

import random
import time
from statistics import fmean

from penstock.bench.result import BenchResult, Table, at_most
from penstock.bench.stats import Summary, summary
from penstock.model import MMk, Network, NetworkStage
from penstock.plan import assign_processors

RUNS = 30
TABLE_II = (12, 24, 48, 96, 192)
LARGE_SLOTS, LARGE_STAGES = 10_000, 100


def planning(result: BenchResult) -> None:
    """Logo detection with up to 192 slots, and a hundred stages with 10,000."""
    result.put("plan_ms_k22", plan_milliseconds(logo_detection(22), 22), at_most(1))
    large = some_network(LARGE_STAGES, 0.8 * LARGE_SLOTS)
    result.put("plan_ms_k10000_n100", plan_milliseconds(large, LARGE_SLOTS), at_most(100))
    taken = {slots: plan_milliseconds(logo_detection(slots), slots) for slots in TABLE_II}
    rows = [[str(slots), f"{each.value:.3f}"] for slots, each in taken.items()]
    result.tables.append(Table("ms to place slots on three stages", ["slots", "ms"], rows))


def plan_milliseconds(network: Network, slots: int) -> Summary:
    """Of one plan; the models are made anew each time, as after a measurement."""
    taken = []
    for _ in range(RUNS):
        stages = tuple(NetworkStage(each.name, each.model, each.weight) for each in network.stages)
        began = time.perf_counter()
        assign_processors(Network(stages), slots)
        taken.append(1000 * (time.perf_counter() - began))
    return summary(taken)


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


def some_network(stages: int, busy_slots: float, seed: int = 1) -> Network:
    """Stages with shares of the load by chance."""
    chance = random.Random(seed)
    shares = [chance.uniform(0.2, 1.8) for _ in range(stages)]
    scale = busy_slots / stages / fmean(shares)
    made = (
        NetworkStage(f"s{place}", MMk(10.0, 10.0 / (share * scale))) for place, share in enumerate(shares)
    )
    return Network(tuple(made))
