"""The simulator: against real runs of two benches, its speed, and a day of a large cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.bench.result import BenchResult, Table, at_least, at_most
from penstock.bench.scaling.predicted_runs import Judged, judged_share, judged_tenants
from penstock.bench.stats import Summary, single, summary
from penstock.scheduling.policies import Fifo, Llf, Policy
from penstock.simulate import Plant, Simulation, SimulationSettings
from penstock.simulate.reference import crowded_pool, large_cluster

POOL_SLOTS = 4
POOL_SECONDS = 600.0
POOL_RUNS = 3
LLF_SLOWER = 20
"""About as many times, so that both take as long."""
DAY_SECONDS = 24 * 3600.0
COLUMNS = (
    "figure",
    "results",
    "runs before s",
    "measured s",
    "predicted s",
    "off by",
    "arrivals known",
    "replayed",
    "runs apart",
)


@dataclass(frozen=True)
class Simulated:
    """How fast a simulation was."""

    events: int
    turns: int
    segments: int
    """Of the events, those that only came: under fifo they are drawn many at once."""
    seconds: float

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds

    @property
    def turns_per_second(self) -> float:
        return self.turns / self.seconds


def simulator(result: BenchResult, say: Callable[[str], None]) -> None:
    """All of it; the real runs come first, each bench in JVMs of its own."""
    tell_errors(result, [*judged_share(say), *judged_tenants(say)])
    say("speed of simulations")
    speed(result)
    say("24 hours of 1,000 nodes and 10,000 stages")
    day = of_large_cluster(DAY_SECONDS)
    result.put("simulator_day_seconds", single(day.seconds))
    result.setup["simulated_day"] = {"events": day.events, "nodes": 1_000, "stages": 10_000}


def tell_errors(result: BenchResult, judged: Sequence[Judged]) -> None:
    """The largest error counts; figures of too few results stand beside it, as they hang on one of them."""
    counted = [each for each in judged if each.enough]
    few = [each for each in judged if not each.enough]
    result.put("simulator_error", _largest([each.error for each in counted]), at_most(0.15))
    if few:
        result.put("simulator_error_few_results", _largest([each.error for each in few]))
    result.put("simulator_error_arrivals_known", _largest([each.arrivals_known_error for each in counted]))
    result.put("simulator_replay_error", _largest([each.replay_error for each in counted]))
    result.put("measured_runs_apart", _largest([each.runs_apart for each in counted]))
    result.setup["simulator"] = {
        "simulator_error": "runs, each predicted from the one before: costs, slow spells and delays of the "
        "latter, the arrivals as declared; the largest of p50 and p99 of urgent and bulky groups",
        "simulator_error_arrivals_known": "the same with the moments at which the run's own sources were "
        "created and its messages fed",
        "simulator_replay_error": "runs, simulated from their own turns at their moments",
        "measured_runs_apart": "the runs before against these: what no prediction can be expected to meet",
        "too_few_results": [each.name for each in few],
    }
    result.tables.append(
        Table(
            "simulated against measured",
            COLUMNS,
            [each.cells for each in judged],
        )
    )


def _largest(errors: Sequence[float]) -> Summary:
    return Summary(max(errors), min(errors), max(errors), len(errors))


def speed(result: BenchResult, runs: int = POOL_RUNS, seconds: float = POOL_SECONDS) -> None:
    """Of a crowded pool under fifo; and under llf, where each segment has a deadline of its own."""
    for name, policy, simulated in (("", Fifo(), seconds), ("_llf", Llf(), seconds / LLF_SLOWER)):
        found = _timed_runs(policy, runs, simulated)
        mark = None if name else at_least(300_000)
        result.put(f"simulator_events_per_s{name}", summary([each.events_per_second for each in found]), mark)
        result.put(f"simulator_turns_per_s{name}", summary([each.turns_per_second for each in found]))
        result.setup[f"simulated_events{name}"] = {
            "segments that came": found[0].segments / found[0].events,
            "grants, ends and deliveries of turns": 1.0 - found[0].segments / found[0].events,
        }


def _timed_runs(policy: Policy, runs: int, seconds: float) -> list[Simulated]:
    settings = SimulationSettings.on_slots(policy, POOL_SLOTS, seed=1)
    return [_timed(crowded_pool(slots=POOL_SLOTS), settings, seconds) for _ in range(runs)]


def of_large_cluster(seconds: float, stages: int = 10_000, nodes: int = 1_000) -> Simulated:
    """So long a time of chains on so many nodes, with 10 turns a second in all."""
    plant, joined = large_cluster(stages, nodes)
    return _timed(plant, SimulationSettings(Fifo(), joined, seed=1), seconds)


def _timed(plant: Plant, settings: SimulationSettings, seconds: float) -> Simulated:
    began = time.perf_counter()
    outcome = Simulation(plant, settings).run(seconds)
    return Simulated(outcome.events, outcome.turns, outcome.segments, time.perf_counter() - began)
