"""How long a plan takes."""

from __future__ import annotations

import random
import time

from penstock.bench.stats import Summary, summary
from penstock.plan import PlanStage, Pool, Product, Workflow, plan_batches

RUNS = 20


def planning_milliseconds(stages: int) -> Summary:
    """Of workflows with so many stages, each after one or two others, at random."""
    taken = []
    for seed in range(RUNS):
        workflow = some_workflow(stages, seed)
        began = time.perf_counter()
        plan_batches(workflow, Pool(8))
        taken.append(1000 * (time.perf_counter() - began))
    return summary(taken)


def some_workflow(count: int, seed: int) -> Workflow:
    """A tree of stages with a few joins; the last ones make products."""
    chance = random.Random(seed)
    stages: list[PlanStage] = []
    for place in range(count):
        above = chance.sample(range(place), min(place, chance.choice([1, 1, 1, 2])))
        stages.append(
            PlanStage(
                f"s{place}",
                chance.uniform(0.02, 0.15),
                chance.choice([1e-6, 1e-5, 1e-4]),
                {f"s{each}": chance.choice([0.1, 0.5, 1.0]) for each in above},
                rows_per_second=200.0 if place == 0 else 0.0,
            )
        )
    read = {name for stage in stages for name in stage.above}
    ends = [stage.name for stage in stages if stage.name not in read]
    products = tuple(Product(name, name, chance.choice([0.5, 1.0, 5.0, 30.0])) for name in ends)
    return Workflow(tuple(stages), products)
