"""Small plants, and the mean of several seeds with its confidence interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from typing import Any

from penstock.scheduling.policies import Fifo, Policy
from penstock.simulate import (
    Arrivals,
    Inflow,
    Outcome,
    Plant,
    Renewal,
    Simulation,
    SimulationSettings,
    StageSetup,
    TurnCost,
)

# Student's t for 99% and 7 degrees of freedom: 8 seeds.
SEEDS, T_99 = 8, 3.499


@dataclass(frozen=True)
class Interval:
    """The mean of the seeds, and half the width of its 99% confidence interval."""

    mean: float
    half: float

    def holds(self, value: float, slack: float = 0.0) -> bool:
        """Whether the value lies in it; `slack` is a share, for formulas that are not exact."""
        return abs(self.mean - value) <= self.half + slack * value


def over_seeds(measure: Callable[[int], float]) -> Interval:
    values = [measure(seed) for seed in range(SEEDS)]
    return Interval(mean(values), T_99 * stdev(values) / sqrt(SEEDS))


def one_stage(cost: TurnCost, arrivals: Arrivals, **others: Any) -> Plant:
    stage = StageSetup("p.s", "p", cost, ("p.in",), sink="out", **others)
    return Plant((stage,), (Inflow("p.in", arrivals),))


def pool(count: int, cost: TurnCost, rows_per_second: float) -> Plant:
    names = [f"p.s{number}" for number in range(count)]
    stages = tuple(StageSetup(name, "p", cost, (f"{name}.in",), sink=name[2:]) for name in names)
    return Plant(stages, tuple(Inflow(f"{name}.in", Renewal(rows_per_second)) for name in names))


def simulated(
    plant: Plant, slots: int, seconds: float, policy: Policy | None = None, **others: Any
) -> Outcome:
    settings = SimulationSettings.on_slots(policy or Fifo(), slots, **others)
    return Simulation(plant, settings).run(seconds, seconds / 20)


def mean_sojourn(
    plant: Plant, slots: int, seconds: float, policy: Policy | None = None, **others: Any
) -> float:
    """Over the rows of all sinks."""
    sinks = simulated(plant, slots, seconds, policy, **others).sinks.values()
    rows = sum(sink.latency.count for sink in sinks)
    return sum(sink.latency.mean * sink.latency.count for sink in sinks) / rows
