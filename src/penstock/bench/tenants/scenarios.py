"""The scenarios: what each runs, its figures with their marks, its table, and its pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle

from penstock.bench.result import BenchResult, Plot, at_least, at_most, within
from penstock.bench.stats import Summary, single, summary
from penstock.bench.tenants import plots
from penstock.bench.tenants.load import Load, noop_load
from penstock.bench.tenants.runs import Run, best_rival, latency_ratio, ratio
from penstock.bench.tenants.share import share_scenario
from penstock.bench.tenants.side import REAL_TIME, RIVALS
from penstock.bench.tenants.stand import OVERLOAD, STEP, Stand
from penstock.bench.tenants.tables import real_time_table, table_of, turns_table
from penstock.workloads.tenants.groups import ArrivalName, urgent_jobs

Scenario = Callable[[Stand, BenchResult], None]

VOLUMES: Mapping[float, tuple[str, ...]] = {
    0.25: ("fair", "ours"),
    0.5: (*RIVALS, "ours"),
    1.0: (*RIVALS, "ours"),
}
"""Bulk volume, as a multiple of what plain Spark can bear, and the sides that run it."""
REPEATS = 3
"""Runs of FIFO and ours under overload: their marks are nearer than one run lies to the next."""
LEAST_VOLUME, MOST_VOLUME = 1 / 16, 8.0
SEMANTICS_LOAD, SIZES_LOAD = 0.25, 0.25
NOOP_TENANTS = 300
SIGMAS = (0.0, 0.1, 0.3, 1.0)
SIZES = (1_000, 5_000, 10_000, 20_000, 40_000)


def overload(stand: Stand, result: BenchResult) -> None:
    """Twice what plain Spark can bear (the right end of figure 8a)."""
    load = stand.mixed(OVERLOAD * stand.capacity)
    made = stand.compare((*RIVALS, "gate", "stages", "ours"), load)
    stand.release("gate", "stages")
    for _ in range(REPEATS - 1):
        made += stand.compare(("fifo", "ours"), load)
    by_side: dict[str, list[Run]] = {}
    for run in made:
        by_side.setdefault(run.side, []).append(run)
    put_overload(result, by_side)
    result.put("bulk_capacity_fifo", single(stand.capacity))
    _show(result, "overload", made, "bulk rows/s")
    result.tables.append(turns_table(made))


def volume(stand: Stand, result: BenchResult) -> None:
    """Bulk volume rises, to where FAIR has less than half of the urgent results in time (figure 8a).

    What was run under overload before is drawn with it.
    """
    jobs = stand.mixed(OVERLOAD * stand.capacity).jobs
    before = [run for run in stand.runs if run.load.jobs == jobs and run.measured == stand.times.measured]
    runs = {
        factor: stand.compare(sides, stand.mixed(factor * stand.capacity))
        for factor, sides in VOLUMES.items()
    }
    _look_for_half(stand, runs)
    put_in_time(result, [{run.side: run for run in made} for made in runs.values()])
    shown = [*(run for factor in sorted(runs) for run in runs[factor]), *before]
    _show(result, "volume", shown, "bulk rows/s")
    result.plots.append(Plot("volume-in-time", partial(plots.draw_in_time, runs=shown, across="bulk rows/s")))


def _look_for_half(stand: Stand, runs: dict[float, list[Run]]) -> None:
    """Adds loads around the highest at which FAIR has half of the urgent results in time.

    Lower ones while there is none and higher ones while it has half at all, then in the middle between it and
    the next, until it is known to a tenth.
    """

    def held() -> list[float]:
        return [factor for factor, made in runs.items() if _has_half(made)]

    def add(factor: float) -> None:
        load = stand.mixed(factor * stand.capacity)
        runs[factor] = stand.compare(("fair", "ours"), load)

    while not held() and min(runs) > LEAST_VOLUME:
        add(min(runs) / 2)
    while max(runs) in held() and max(runs) < MOST_VOLUME:
        add(2 * max(runs))
    while held() and (over := [factor for factor in runs if factor > max(held())]):
        if min(over) <= (1 + STEP) * max(held()):
            break
        add((max(held()) + min(over)) / 2)


def _has_half(runs: Sequence[Run]) -> bool:
    """Whether FAIR has half of the urgent results in time."""
    return any(run.side == "fair" and run.urgent.in_time >= 0.5 for run in runs)


def put_overload(result: BenchResult, runs: Mapping[str, Sequence[Run]]) -> None:
    """Latency of the urgent tenants and work of the bulky ones, rivals over ours, the runs of a round each.

    A side that ran less often than ours counts with the runs it has, over again.
    """
    own = runs["ours"]
    marks = {"fifo": (4.6, 13.6), "fair": (2.7, 4.6)}
    for side in RIVALS:
        for name, share, mark in zip(("p50", "p99"), (0.5, 0.99), marks[side], strict=True):
            result.put(f"ls_{name}_ratio_{side}", _over(runs[side], own, share), at_least(mark))
    rounds = zip(own, *(cycle(runs[side]) for side in RIVALS), strict=False)
    done = [ratio(mine.bulk.done, max(rival.bulk.done for rival in rivals)) for mine, *rivals in rounds]
    result.put("bulk_throughput_ratio", summary(done, 0.0, 1.0), at_least(0.975))
    result.put("cuts_overran_share", summary([run.cuts_overran_share for run in own], 0.0, 1.0))
    for side in ("gate", "stages"):
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            if side in runs:
                result.put(f"ls_{name}_ratio_{side}", _over(runs[side], own, share))


def _over(rivals: Sequence[Run], own: Sequence[Run], share: float) -> Summary:
    """A rival's urgent latency over ours, round by round: the middle one, and between which they lie."""
    each = [
        latency_ratio(rival.urgent, mine.urgent, share)
        for rival, mine in zip(cycle(rivals), own, strict=False)
    ]
    if len(each) == 1:
        return each[0]
    return summary([ratio.value for ratio in each], 0.0, 1.0)


def put_in_time(result: BenchResult, steps: list[dict[str, Run]]) -> None:
    """Results in time, at the highest load at which FAIR still has half of them.

    Where it never has, there is no such load, and the figure is not a number; the least load is told beside.
    """
    ordered = sorted(steps, key=lambda step: step["fair"].load.bulk_rows_per_second)
    held = [step for step in ordered if _has_half(list(step.values()))]
    chosen = (held or ordered[:1])[-1]
    own = chosen["ours"].urgent.in_time
    result.put("ls_in_time", single(own if held else math.nan), at_least(0.99))
    if not held:
        result.put("ls_in_time_least_load", single(own))
    result.put("ls_in_time_fair", single(chosen["fair"].urgent.in_time))
    result.put("ls_in_time_rate", single(chosen["ours"].load.bulk_rows_per_second))


def jobs(stand: Stand, result: BenchResult) -> None:
    """The number of bulk tenants rises, each with its part of what plain Spark can bear (figure 8b)."""
    each = stand.capacity / 8
    made = [
        run
        for count in (4, 8, 12, 16)
        for run in stand.compare((*RIVALS, "ours"), stand.mixed(each * count, count))
    ]
    _show(result, "jobs", made, "bulk tenants")


def slots(stand: Stand, result: BenchResult) -> None:
    """Fewer slots (figure 8c): half of what plain Spark can bear on two, on one of them."""
    load = stand.mixed(0.5 * stand.capacity)
    made = [run for count in (2, 1) for run in stand.compare((*RIVALS, "ours"), load, slots=count)]
    stand.release(slots=1)
    result.put("in_time_1slot", single(made[-1].urgent.in_time), at_least(0.9))
    _show(result, "slots", made, "slots")


def pareto(stand: Stand, result: BenchResult) -> None:
    """Pareto arrivals of eight bulk tenants, at half of what plain Spark can bear (figure 9)."""
    figure = _bursty(stand, result, "pareto", "pareto")
    result.put("burst_p99_ratio", figure, at_least(10.0))


def bursts(stand: Stand, result: BenchResult) -> None:
    """The same with arrivals that are loud for 2 s of 10."""
    result.put("bursts_p99_ratio", _bursty(stand, result, "bursts", "bursts"))


def _bursty(stand: Stand, result: BenchResult, name: str, arrivals: ArrivalName) -> Summary:
    """The best rival's p99 over ours."""
    bulk = stand.bulk_jobs(0.5 * stand.capacity, 8, arrivals=arrivals)
    made = stand.compare((*RIVALS, "ours"), Load((*urgent_jobs(), *bulk)))
    _show(result, name, made, "bulk rows/s")
    result.plots.append(Plot(f"{name}-time", partial(plots.draw_time, runs=made)))
    return latency_ratio(best_rival(made[:2], 0.99).urgent, made[2].urgent, 0.99)


def skew(stand: Stand, result: BenchResult) -> None:
    """Sources that differ by 200 times, at one and a half of what plain Spark can bear (figure 10)."""
    both = (
        *urgent_jobs(arrivals="skewed"),
        *stand.bulk_jobs(1.5 * stand.capacity, arrivals="skewed"),
    )
    made = stand.compare((*RIVALS, "ours"), Load(both))
    rival = max(run.urgent.in_time for run in made[:2])
    # A rival without any result in time counts with one of all.
    least = 1 / max(len(made[0].urgent.latencies), 1)
    figure = ratio(made[2].urgent.in_time, max(rival, least))
    result.put("skew_in_time_ratio", single(figure), at_least(2.0))
    _show(result, "skew", made, "bulk rows/s")
    result.plots.append(Plot("skew-in-time", partial(plots.draw_in_time, runs=made, across="bulk rows/s")))


def policies(stand: Stand, result: BenchResult) -> None:
    """Least laxity, earliest deadline, shortest job: each query alone, then many (figure 11)."""
    alone = [
        stand.run("ours", Load(urgent_jobs(1, query=query)).under(name))
        for query in ("ipq1", "ipq2", "ipq3", "ipq4")
        for name in ("llf", "edf", "sjf")
    ]
    made = [stand.run("ours", stand.mixed(stand.capacity).under(name)) for name in ("llf", "edf", "sjf")]
    _show(result, "policies", made, "policy")
    _show(result, "policies-alone", alone, "query, policy")


def semantics(stand: Stand, result: BenchResult) -> None:
    """With the windows of queries known to the scheduler, and without (figure 14).

    At a load whose results come, both ways: what never comes would make the two medians the same.
    """
    load = stand.mixed(SEMANTICS_LOAD * stand.capacity)
    knowing = stand.run("ours", load)
    without = stand.run("ours", load.under("llf", semantics=False))
    gain = latency_ratio(without.bulk, knowing.bulk, 0.5)
    result.put("semantics_gain", gain, at_least(1.15))
    both = [knowing, without]
    _show(result, "semantics", both, "policy")
    drawn = partial(plots.draw_latency, runs=both, across="policy", group="bulk")
    result.plots.append(Plot("semantics-bulk", drawn))


def sigma(stand: Stand, result: BenchResult) -> None:
    """Errors on the costs that the scheduler knows (figure 15)."""
    load = stand.mixed(stand.capacity)
    made = [stand.run("ours", load.under("llf", cost_error_seconds=each)) for each in SIGMAS]
    p90 = latency_ratio(made[1].urgent, made[0].urgent, 0.9)
    result.put("sigma_robust", p90, at_most(1.25))
    _show(result, "sigma", made, "error of costs, s")


def alone(stand: Stand, result: BenchResult) -> None:
    """Each query alone (figure 7)."""
    shown: list[Run] = []
    for query in ("ipq1", "ipq2", "ipq3", "ipq4"):
        load = Load(urgent_jobs(1, query=query))
        made = stand.compare((*RIVALS, "ours"), load)
        for name, share, mark in (("p50", 0.5, 1.5), ("p99", 0.99, 2.0)):
            rival = best_rival(made[:2], share)
            figure = latency_ratio(rival.urgent, made[2].urgent, share)
            result.put(f"{query}_{name}_ratio", figure, at_least(mark))
        real_time = stand.real_time(load)
        if real_time is not None:
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                figure = latency_ratio(real_time.urgent, made[2].urgent, share)
                result.put(f"{query}_{name}_ratio_realtime", figure)
            made.append(real_time)
        shown += made
    _show(result, "single", shown, "query")
    stand.release(REAL_TIME)
    result.tables.append(real_time_table(stand.real_time_said))


def sizes(stand: Stand, result: BenchResult) -> None:
    """The same bulk volume in messages of 1,000 to 40,000 events (figure 13).

    At a quarter of what plain Spark can bear: to feed more in messages of 1,000 would take most of a core.
    """
    load = stand.mixed(SIZES_LOAD * stand.capacity)
    made = []
    for rows in SIZES:
        resized = tuple(
            job
            if job.group == "urgent"
            else replace(job, message_seconds=rows * job.sources / job.rows_per_second)
            for job in load.jobs
        )
        made.append(stand.run("ours", replace(load, jobs=resized)))
    _show(result, "sizes", made, "rows a message")


def overhead(stand: Stand, result: BenchResult) -> None:
    """Scheduling over execution, as the tenants run and with 300 that do nothing (figure 12)."""
    busy = stand.run("ours", stand.mixed(stand.capacity))
    result.put("overhead_share", single(busy.overhead_share), at_most(0.064))
    turns = busy.window_turns
    result.put("window_turns", summary(turns) if turns else single(math.nan), within(1.0, 1.0))
    idle = stand.run("ours", noop_load(NOOP_TENANTS))
    result.put("overhead_share_noop", single(idle.overhead_share), at_most(0.15))
    shown = {"tenants": busy, f"{NOOP_TENANTS} no-ops": idle}
    marks = dict(zip(shown, (0.064, 0.15), strict=True))
    result.plots.append(Plot("overhead", partial(plots.draw_overhead, runs=shown, marks=marks)))


SCENARIOS: Mapping[str, Scenario] = {
    "overload": overload,
    "volume": volume,
    "single": alone,
    "overhead": overhead,
    "share": share_scenario,
    "semantics": semantics,
    "sigma": sigma,
    "jobs": jobs,
    "slots": slots,
    "pareto": pareto,
    "bursts": bursts,
    "skew": skew,
    "policies": policies,
    "sizes": sizes,
}


def _show(result: BenchResult, name: str, runs: list[Run], across: str) -> None:
    result.tables.append(table_of(name, runs, across))
    result.plots.append(Plot(name, partial(plots.draw_latency, runs=runs, across=across)))
