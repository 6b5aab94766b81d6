"""The simulator: against real runs of two benches, its speed, and a day of a large cluster."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from penstock.bench.result import BenchResult, Table, at_least, at_most
from penstock.bench.stats import Summary, quantile, single, summary
from penstock.bench.tenants.load import mixed
from penstock.bench.tenants.runs import JobRun
from penstock.bench.tenants.runs import Run as TenantsMeasured
from penstock.bench.tenants.stand import Stand as TenantsStand
from penstock.bench.tenants.stand import Times as TenantsTimes
from penstock.scheduling.catalog import policy_named
from penstock.scheduling.policies import Fifo, Llf, Policy
from penstock.simulate import Plant, Simulation, SimulationSettings, TurnCost, fitted
from penstock.simulate.delays import Delays, SeenTurn, delays_of, shown_before
from penstock.simulate.reference import crowded_pool, large_cluster
from penstock.simulate.share import (
    ShareSettings,
    costs_of,
    created_of,
    delays_in,
    share_errors,
    simulated_share,
)
from penstock.simulate.tenants import TenantsSettings, simulated_tenants
from penstock.workloads.share_process import run_side
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import SIDES

SHARE_SECONDS = (60.0, 120.0)
"""Warm-up and measured part, as in `bench share`."""
TENANTS = TenantsTimes(warmup=30.0, measured=60.0, heat=60.0)
BULK_ROWS_PER_SECOND = 100_000.0
SHARES = {"p50": 0.5, "p99": 0.99}
SEEDS = 7
"""Simulated runs of each measured one; the median of each figure counts."""
POOL_SLOTS = 4
POOL_SECONDS = 600.0
POOL_RUNS = 3
LLF_SLOWER = 20
"""About as many times, so that both take as long."""
DAY_SECONDS = 24 * 3600.0
TICK_SECONDS = 5.0

Errors = Mapping[str, float]


@dataclass(frozen=True)
class Simulated:
    """How fast a simulation was."""

    events: int
    seconds: float

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds


def simulator(result: BenchResult, say: Callable[[str], None]) -> None:
    """All of it; the real runs come first, each in a JVM of its own."""
    errors = {**_prefixed("share", _share(say)), **_prefixed("tenants", _tenants(say))}
    urgent = [error for name, error in errors.items() if "urgent" in name]
    result.put("simulator_error", Summary(max(urgent), min(urgent), max(urgent), len(urgent)), at_most(0.15))
    rows = [[name, f"{error:.1%}"] for name, error in errors.items()]
    result.tables.append(Table("simulated against measured", ["figure", "off by"], rows))
    speed(result)
    say("24 hours of 1,000 nodes and 10,000 stages")
    day = of_large_cluster(DAY_SECONDS)
    result.put("simulator_day_seconds", single(day.seconds))
    result.setup["simulated_day"] = {"events": day.events, "nodes": 1_000, "stages": 10_000}


def speed(result: BenchResult, runs: int = POOL_RUNS, seconds: float = POOL_SECONDS) -> None:
    """Of a crowded pool under fifo; and under llf, where each segment has a deadline of its own."""
    result.put("simulator_events_per_s", _speed(Fifo(), runs, seconds), at_least(300_000))
    result.put("simulator_events_per_s_llf", _speed(Llf(), runs, seconds / LLF_SLOWER))


def _speed(policy: Policy, runs: int, seconds: float) -> Summary:
    settings = SimulationSettings.on_slots(policy, POOL_SLOTS, seed=1)
    found = [_timed(crowded_pool(slots=POOL_SLOTS), settings, seconds) for _ in range(runs)]
    return summary([each.events_per_second for each in found])


def of_large_cluster(seconds: float, stages: int = 10_000, nodes: int = 1_000) -> Simulated:
    """So long a time of chains on so many nodes, with 10 turns a second in all."""
    plant, joined = large_cluster(stages, nodes)
    return _timed(plant, SimulationSettings(Fifo(), joined, seed=1), seconds)


def _timed(plant: Plant, settings: SimulationSettings, seconds: float) -> Simulated:
    began = time.perf_counter()
    outcome = Simulation(plant, settings).run(seconds)
    return Simulated(outcome.events, time.perf_counter() - began)


def _share(say: Callable[[str], None]) -> Errors:
    """The side of Penstock, measured and simulated from the costs of its own turns."""
    say("bench share, measured")
    warmup, seconds = SHARE_SECONDS
    measured = ShareRun(SIDES["penstock"], warmup)
    run_side(measured, seconds, on_tick=lambda run: None, tick_seconds=TICK_SECONDS)
    settings = ShareSettings(
        seconds, warmup, created=created_of(measured) or None, delays=delays_in(measured)
    )
    costs = costs_of(measured)
    return share_errors(
        measured, *(simulated_share(costs, replace(settings, seed=seed)) for seed in range(SEEDS))
    )


def _tenants(say: Callable[[str], None]) -> Errors:
    """Urgent and bulky tenants under llf, measured and simulated."""
    say("bench tenants, measured")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-simulator-", ignore_cleanup_errors=True) as scratch,
        closing(TenantsStand(Path(scratch), TENANTS, say)) as stand,
    ):
        measured = stand.run("ours", mixed(BULK_ROWS_PER_SECOND))
    return tenants_errors(measured)


def tenants_errors(measured: TenantsMeasured, seeds: int = SEEDS) -> Errors:
    """By how much p50 and p99 of both groups differ, as shares of what was measured."""
    costs = {each.job.name: cost for each in measured.jobs if (cost := job_cost(each, measured.warmup))}
    policy = policy_named(measured.load.policy.name)
    fed = {each.job.name: each.fed for each in measured.jobs}
    settings = TenantsSettings(
        policy,
        measured.warmup,
        measured.measured,
        measured.slots,
        delays=tenants_delays(measured),
        fed=fed,
    )
    expected = [
        simulated_tenants(measured.load.jobs, costs, replace(settings, seed=seed)) for seed in range(seeds)
    ]
    found = {}
    for group, real in (("urgent", measured.urgent), ("bulk", measured.bulk)):
        told = [[each for job in real.jobs for each in run.latencies(job.job.name)] for run in expected]
        found.update(_apart(group, real.latencies, told))
    return found


def job_cost(job: JobRun, warmup: float) -> TurnCost | None:
    """What turns of a job cost after the warm-up, with all of them to be met again; None without any."""
    warm = [(rows, slots, seconds) for granted, rows, slots, seconds in job.turns if granted >= warmup]
    return fitted(warm).meeting(job.turns) if warm else None


def tenants_delays(measured: TenantsMeasured) -> Delays:
    """What passed between the turns of a run, and between messages that were fed and turns."""
    turns = [
        SeenTurn(each.job.name, granted, granted + seconds)
        for each in measured.jobs
        for granted, _, _, seconds in each.turns
    ]
    came = {each.job.name: sorted(at for _, _, at in each.fed) for each in measured.jobs}
    shown = {
        each.job.name: sorted(
            completed + latency for completed, latency, missing in each.samples if not missing
        )
        for each in measured.jobs
    }
    return replace(delays_of(turns, came, measured.warmup), shown=shown_before(turns, shown))


def _apart(group: str, real: Sequence[float], told: Sequence[Sequence[float]]) -> dict[str, float]:
    pairs = {
        name: (quantile(real, share), median(quantile(each, share) for each in told))
        for name, share in SHARES.items()
    }
    return {f"{group}_{name}": abs(other - one) / one for name, (one, other) in pairs.items() if one > 0.0}


def _prefixed(name: str, errors: Errors) -> dict[str, float]:
    return {f"{name}_{each}": error for each, error in errors.items()}
