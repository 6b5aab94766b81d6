"""Runs of `bench share` and `bench tenants`, measured several times, each predicted from the one before."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from penstock.bench.tenants.runs import JobRun
from penstock.bench.tenants.runs import Run as TenantsMeasured
from penstock.bench.tenants.stand import Stand as TenantsStand
from penstock.bench.tenants.stand import Times as TenantsTimes
from penstock.scheduling.catalog import policy_named
from penstock.simulate import TurnCost, fitted
from penstock.simulate.accuracy import Latencies, Told, compared, pooled
from penstock.simulate.delays import Delays, SeenTurn, delays_of, shown_before
from penstock.simulate.share import (
    ShareSettings,
    created_of,
    latencies_in,
    measured_part,
    predicted_share,
    replayed_share,
)
from penstock.simulate.spells import Part, reordered
from penstock.simulate.tenants import TenantsRun, TenantsSettings, simulated_tenants
from penstock.workloads.share_process import run_side
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import SIDES
from penstock.workloads.tenants.groups import GROUPS

SHARE_WARMUP_SECONDS = 60.0
SHARE_SECONDS = (120.0, 250.0, 250.0, 250.0)
"""Measured in the first run, which only predicts, and in those after it. In 250 s the four bulky pipelines
have 100 windows: of fewer, p99 would be but the largest."""
TENANTS = TenantsTimes(warmup=30.0, measured=60.0, heat=240.0)
"""Code of theirs is compiled for minutes: a run while it is says little of the next one."""
TENANTS_RUNS = 4
BULK_ROWS_PER_SECOND = 100_000.0
SHARE_SEEDS, TENANTS_SEEDS = 15, 7
"""Simulated runs of each measured one; the median of each figure counts."""
TICK_SECONDS = 30.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Judged:
    """One figure of some runs: measured, predicted from those before them, and replayed from themselves."""

    bench: str
    predicted: Told
    arrivals_known: Told
    """Predicted, but for when its sources were created or its messages fed: as these were."""
    replayed: Told
    before: Told
    """The runs before them, taken for a prediction."""

    @property
    def name(self) -> str:
        return f"{self.bench}_{self.predicted.name}"

    @property
    def enough(self) -> bool:
        """Whether there are enough results for it to say something."""
        return self.predicted.enough

    @property
    def error(self) -> float:
        return self.predicted.error

    @property
    def arrivals_known_error(self) -> float:
        return self.arrivals_known.error

    @property
    def replay_error(self) -> float:
        return self.replayed.error

    @property
    def runs_apart(self) -> float:
        return self.before.error

    @property
    def cells(self) -> list[str]:
        told = self.predicted
        few = "" if self.enough else " (too few)"
        seconds = [f"{each:.3f}" for each in (self.before.told, told.measured, told.told)]
        errors = (self.error, self.arrivals_known_error, self.replay_error, self.runs_apart)
        return [self.name, f"{told.samples}{few}", *seconds, *(f"{each:.1%}" for each in errors)]


@dataclass(frozen=True)
class Simulated:
    """What simulations told of the same runs, one for each seed."""

    predicted: Sequence[Latencies]
    arrivals_known: Sequence[Latencies]
    replayed: Sequence[Latencies]


def judged(bench: str, before: Latencies, measured: Latencies, simulated: Simulated) -> list[Judged]:
    """All figures of runs that were measured after those `before`."""
    ways = (simulated.predicted, simulated.arrivals_known, simulated.replayed, [before])
    return [Judged(bench, *told) for told in zip(*(compared(measured, *way) for way in ways), strict=True)]


def judged_share(say: Say) -> list[Judged]:
    """The side of Penstock, each time in a JVM of its own."""
    return share_judged([_measured_share(seconds, say) for seconds in SHARE_SECONDS], say)


def share_judged(runs: Sequence[ShareRun], say: Say, seeds: int = SHARE_SEEDS) -> list[Judged]:
    """The figures of all runs but the first, each from what the one before it has shown."""
    say("  simulating")
    pairs = list(pairwise(runs))

    def settings(run: ShareRun, seed: int) -> ShareSettings:
        return ShareSettings(measured_part(run).seconds, run.warmup_seconds, seed=seed)

    def predicted(seed: int, *, known: bool) -> Latencies:
        told = (
            replace(settings(run, seed), created=(created_of(run) or None) if known else None)
            for _, run in pairs
        )
        return pooled(
            *(
                latencies_in(predicted_share(first, each))
                for (first, _), each in zip(pairs, told, strict=True)
            )
        )

    simulated = Simulated(
        [predicted(seed, known=False) for seed in range(seeds)],
        [predicted(seed, known=True) for seed in range(seeds)],
        [pooled(*(latencies_in(replayed_share(run, seed)) for _, run in pairs)) for seed in range(seeds)],
    )
    before, measured = (pooled(*map(latencies_in, each)) for each in zip(*pairs, strict=True))
    return judged("share", before, measured, simulated)


def _measured_share(seconds: float, say: Say) -> ShareRun:
    say(f"bench share: {SHARE_WARMUP_SECONDS:g} s of warm-up, {seconds:g} s measured")
    run = ShareRun(SIDES["penstock"], SHARE_WARMUP_SECONDS)
    return run_side(
        run, seconds, on_tick=lambda run: say(so_far(run, time.time())), tick_seconds=TICK_SECONDS
    )


def so_far(run: ShareRun, now: float) -> str:
    """What a run that goes on has shown."""
    urgent = run.group("urgent", now)
    return f"  urgent p50 {urgent.p50:.2f} s, p99 {urgent.p99:.2f} s of {urgent.results} results"


def judged_tenants(say: Say) -> list[Judged]:
    """Urgent and bulky tenants under llf, several times in one warm process."""
    say(f"bench tenants: {TENANTS.heat:g} s of heat, {TENANTS.warmup + TENANTS.measured:g} s a run")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-simulator-", ignore_cleanup_errors=True) as scratch,
        closing(TenantsStand(Path(scratch), TENANTS, say)) as stand,
    ):
        runs = [stand.run("ours", stand.mixed(BULK_ROWS_PER_SECOND)) for _ in range(TENANTS_RUNS)]
    return tenants_judged(runs, say)


def tenants_judged(runs: Sequence[TenantsMeasured], say: Say, seeds: int = TENANTS_SEEDS) -> list[Judged]:
    """The figures of all runs but the first, each from what the one before it has shown."""
    say("  simulating")
    pairs = list(pairwise(runs))

    def predicted(seed: int, *, known: bool) -> Latencies:
        return pooled(
            *(_told(predicted_tenants(first, run if known else first, seed)) for first, run in pairs)
        )

    simulated = Simulated(
        [predicted(seed, known=False) for seed in range(seeds)],
        [predicted(seed, known=True) for seed in range(seeds)],
        [pooled(*(_told(replayed_tenants(run, seed)) for _, run in pairs)) for seed in range(seeds)],
    )
    before, measured = (pooled(*map(_latencies, each)) for each in zip(*pairs, strict=True))
    return judged("tenants", before, measured, simulated)


def predicted_tenants(before: TenantsMeasured, fed: TenantsMeasured, seed: int) -> TenantsRun:
    """A run that nobody has seen, of the same load and length as one that was, fed as another was."""
    part = Part(before.warmup, before.warmup + before.measured)
    costs = reordered(job_costs(before), part, part, seed)
    settings = replace(_settings(before, seed), fed=_fed(fed))
    return simulated_tenants(before.load.jobs, costs, settings)


def replayed_tenants(measured: TenantsMeasured, seed: int) -> TenantsRun:
    """A measured run once more, whose turns are as slow at each moment as they were."""
    return simulated_tenants(measured.load.jobs, job_costs(measured), _settings(measured, seed))


def _settings(run: TenantsMeasured, seed: int) -> TenantsSettings:
    policy = policy_named(run.load.policy.name)
    return TenantsSettings(policy, run.warmup, run.measured, run.slots, seed, tenants_delays(run), _fed(run))


def _fed(run: TenantsMeasured) -> dict[str, tuple[tuple[float, int, float], ...]]:
    return {each.job.name: each.fed for each in run.jobs}


def _latencies(run: TenantsMeasured) -> Latencies:
    return {group: run.group(group).latencies for group in GROUPS}


def _told(run: TenantsRun) -> Latencies:
    by_group: dict[str, list[float]] = {group: [] for group in GROUPS}
    for name, job in run.jobs.items():
        by_group[job.group] += run.latencies(name)
    return by_group


def job_costs(run: TenantsMeasured) -> dict[str, TurnCost]:
    """By job, where it had turns."""
    return {each.job.name: cost for each in run.jobs if (cost := job_cost(each, run.warmup))}


def job_cost(job: JobRun, warmup: float) -> TurnCost | None:
    """What turns of a job cost after the warm-up, with all of them to be met again; None without any."""
    warm = [(each.rows, each.slots, each.seconds) for each in job.turns if each.granted_at >= warmup]
    turns = [(each.granted_at, each.rows, each.slots, each.seconds) for each in job.turns]
    return fitted(warm).meeting(turns, _results_of(job)) if warm else None


def _results_of(job: JobRun) -> list[float]:
    """When they were at the sink."""
    return sorted(completed + latency for completed, latency, missing in job.samples if not missing)


def tenants_delays(measured: TenantsMeasured) -> Delays:
    """What passed between the turns of a run, and between messages that were fed and turns."""
    turns = [
        SeenTurn(each.job.name, turn.granted_at, turn.ends_at)
        for each in measured.jobs
        for turn in each.turns
    ]
    came = {each.job.name: sorted(at for _, _, at in each.fed) for each in measured.jobs}
    shown = {each.job.name: _results_of(each) for each in measured.jobs}
    return replace(delays_of(turns, came, measured.warmup), shown=shown_before(turns, shown))
