"""`penstock bench batching`: the Wi-Fi workflow with planned batches, beside fixed ones and plain Spark."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.bench.batching import plots
from penstock.bench.batching.load import arrivals_of, rows_by_second
from penstock.bench.batching.meter import NEVER_SECONDS
from penstock.bench.batching.planning import planning_milliseconds
from penstock.bench.batching.privacy import privacy_figures
from penstock.bench.batching.runs import (
    BATCHIT,
    EDGEWISE,
    IN_TIME,
    MICRO,
    SIDES,
    Run,
    Stand,
    Times,
    highest_rate,
)
from penstock.bench.result import BenchResult, BenchSettings, Plot, Table, at_least, at_most
from penstock.bench.stats import single, summary
from penstock.measure.batch_costs import SIZES, BatchCost, by_stage
from penstock.plan.triggers import tuned_seconds
from penstock.plan.workflow import RESERVE

FULL = Times(warmup=15.0, measured=45.0, heat=120.0)
QUICK = Times(warmup=6.0, measured=12.0, heat=20.0)
QUICK_RATE = 200.0
FIRST_RATES = {"batchit": 1000.0, "llf": 1000.0, "edgewise": 200.0, "single": 4.0, "micro": 100.0}
TRIGGERS = ("conditional", "product", "1s", "10s", "60s")
HISTORY_SEED = 101
STEADY_SECONDS = 1200.0
SIZE_SECONDS = 8.0
"""At most, for each size of turns."""
SLOTS = (1, 2, 4, 8)
RESERVES = (0.05, 0.1, 0.4)
MOST_ROWS = (50, 500, 5000)
LEAST_RATE = 1.0
RESOURCES_HEAT, HEAT_SHARE = 300.0, 0.5
"""Seconds at a share of the first rate, before the first of them is measured: the JVM goes on compiling."""
NEAR = 2
"""Steps back from a rate that is not far off."""


@dataclass(frozen=True)
class Asked:
    """Where the search for rates begins, None for the usual, and the sides that are compared."""

    first: float | None
    sides: Sequence[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", action="append", choices=tuple(PARTS), help="only these (default: all)")
    parser.add_argument(
        "--side", action="append", choices=tuple(SIDES), help="of part rates only these (default: all)"
    )
    parser.add_argument("--unfused", action="store_true", help="a stage for each operator, not each product")
    parser.add_argument("--rate", type=float, metavar="ROWS", help="where the search for rates begins")
    parser.add_argument("--warmup", type=float, metavar="S", help="seconds of warm-up of each run")
    parser.add_argument("--measured", type=float, metavar="S", help="seconds measured of each run")


def run(settings: BenchSettings) -> BenchResult:
    """The parts one after the other; each kind of side in a JVM of its own, kept warm."""
    result = BenchResult("batching")
    usual = QUICK if settings.quick else FULL
    times = Times(
        settings.option("warmup") or usual.warmup, settings.option("measured") or usual.measured, usual.heat
    )
    unfused = bool(settings.option("unfused"))
    with (
        tempfile.TemporaryDirectory(prefix="penstock-batching-", ignore_cleanup_errors=True) as scratch,
        closing(Stand(Path(scratch), times, settings.say, unfused=unfused)) as stand,
    ):
        first = settings.option("rate")
        if settings.quick:
            _quick(stand, result, first or QUICK_RATE)
        else:
            for name in settings.option("part") or PARTS:
                settings.say(name)
                PARTS[name](stand, result, Asked(first, settings.option("side") or tuple(SIDES)))
        result.setup |= {
            "times": vars(times),
            "slots": 2,
            "sides": {name: side.label for name, side in SIDES.items()},
            "stages": "one for each operator" if unfused else "one for each product, three for flow",
            "in_time": "mean over products of the share of results within target; a result that never came "
            "is late",
            "latency": "rows from their arrival; windows from the arrival of the first row after their end "
            "that comes to them, since event time goes on with it",
            "held": f"a rate at which {IN_TIME:.1%} are in time, in steps of a quarter; a side with 99% has "
            "a second try",
        }
    return result


def sizes(stand: Stand, result: BenchResult, asked: Asked) -> None:
    """What turns of different sizes cost, for each stage (figure 1)."""
    told = stand.ask(BATCHIT, max(SLOTS), slots=2, sizes=SIZES, seconds=SIZE_SECONDS)
    costs = [BatchCost(**each) for each in told]
    stages = by_stage(costs)
    gains = [own[-1].rows_per_second / own[0].rows_per_second for own in stages.values() if len(own) > 1]
    result.put("batching_gain", summary(gains))
    shown = {(each.stage, each.rows): f"{1000 * each.seconds:,.0f} ms" for each in costs}
    rows = [[stage, *(shown.get((stage, size), "-") for size in SIZES)] for stage in stages]
    result.tables.append(Table("turns by their rows", ["stage", *(f"{size:,}" for size in SIZES)], rows))
    result.plots.append(Plot("sizes", partial(plots.draw_costs, costs=costs)))


def rates(stand: Stand, result: BenchResult, asked: Asked) -> None:
    """The highest rate of each side (figure 5)."""
    found = {name: _highest(stand, name, asked.first) for name in asked.sides}
    rivals = {
        "edgewise": ([each.name for each in EDGEWISE], 1.5),
        "microbatch": ([each.name for each in MICRO], 2.0),
        "single": (["single"], 5.0),
    }
    for label, (names, mark) in rivals.items():
        rates_of = [found[name] for name in names if name in found]
        if "batchit" in found and rates_of:
            # A rival that holds no rate counts with one row a second.
            figure = found["batchit"] / max(*rates_of, LEAST_RATE)
            result.put(f"rate_ratio_{label}", single(figure), at_least(mark))
    for name, rate in found.items():
        result.put(f"rate_{name.replace('-', '_').replace('.', '_')}", single(rate))
    result.tables.append(_table("rates", stand.runs))
    result.plots.append(Plot("rates", partial(plots.draw_rates, runs=list(stand.runs))))


def _highest(stand: Stand, name: str, first: float | None) -> float:
    kind = name.split("-")[0]
    begin = first if first and kind in ("batchit", "llf") else FIRST_RATES[kind]
    return highest_rate(begin, lambda rate: stand.holds(SIDES[name], rate), least=LEAST_RATE)


def step(stand: Stand, result: BenchResult, asked: Asked) -> None:
    """Three times the rate and back: what is in time through it, and how often it is planned anew."""
    low = (asked.first or FIRST_RATES["batchit"]) / 2
    long = stand.times.measured
    parts = [(low, stand.times.warmup + long), (3 * low, long), (low, long)]
    made = [stand.run(BATCHIT, low, rates=parts, seed=each) for each in (1, 2)]
    result.put("in_time_step", summary([each.in_time for each in made]), at_least(0.97))
    result.tables.append(_table("a step to three times the rate and back", made))


def steady(stand: Stand, result: BenchResult, asked: Asked) -> None:
    """How often a steady load is planned anew, and what planning costs."""
    rate = (asked.first or FIRST_RATES["batchit"]) / 2
    warmup = 2 * stand.times.warmup
    made = stand.run(BATCHIT, rate, rates=[(rate, warmup + STEADY_SECONDS)], warmup=warmup, even=True)
    hours = STEADY_SECONDS / 3600
    result.put("replans_per_hour", single(len(made.told["plans_measured"]) / hours), at_most(2.0))
    result.setup["steady"] = {"seconds": STEADY_SECONDS, "replans": made.told["plans_measured"]}
    share = made.told["planning_seconds"] / max(made.told["slot_seconds"], 1e-9)
    result.put("adapt_overhead_share", single(share), at_most(0.01))
    result.put("planning_ms", planning_milliseconds(stages=50), at_most(20.0))


def triggers(stand: Stand, result: BenchResult, asked: Asked) -> None:
    """When to plan anew: what is late against the time spent on it (figure 6)."""
    low = (asked.first or FIRST_RATES["batchit"]) / 2
    long = stand.times.measured
    parts = [(low, stand.times.warmup + long), (3 * low, long), (low, long)]
    made = {name: stand.run(BATCHIT, low, rates=parts, planning=name) for name in TRIGGERS}
    # The day before was like this one, and not this one.
    history = rows_by_second(arrivals_of(parts, seed=HISTORY_SEED))
    tuned = f"{tuned_seconds(history):g}s"
    made[f"tuned ({tuned})"] = stand.run(BATCHIT, low, rates=parts, planning=tuned)
    for name, each in made.items():
        figure = name.split()[0]
        result.put(f"late_{figure}", single(1 - each.in_time))
        result.put(f"planning_seconds_{figure}", single(each.told["planning_seconds"]))
    result.plots.append(Plot("triggers", partial(plots.draw_triggers, runs=made)))


def resources(stand: Stand, result: BenchResult, asked: Asked) -> None:
    """The highest rate against slots, reserve and memory (figure 7)."""
    usual = {"cores": max(SLOTS), "slots": 2}
    first = asked.first or FIRST_RATES["batchit"]
    stand.warm(BATCHIT, max(SLOTS), HEAT_SHARE * first, RESOURCES_HEAT)
    begin = highest_rate(first, _holds(stand, usual), back=NEAR, least=LEAST_RATE)

    def highest(near: float, **more: Any) -> float:
        # One warm process for all, so that nothing but what is named differs.
        return highest_rate(max(near, LEAST_RATE), _holds(stand, {**usual, **more}), back=NEAR)

    slots: dict[float, float] = {
        each: begin if each == usual["slots"] else highest(begin, slots=each) for each in SLOTS
    }
    reserves = {each: begin if each == RESERVE else highest(begin, plan_reserve=each) for each in RESERVES}
    memory: dict[float, float] = {}
    for most in sorted(MOST_ROWS, reverse=True):
        memory[most] = highest(min(memory.values(), default=begin), plan_rows=most)
    found: dict[str, dict[float, float]] = {
        "slots": slots,
        "reserve (epsilon)": reserves,
        "rows in all batches": dict(sorted(memory.items())),
    }
    for label, short in zip(found, ("slots", "reserve", "memory"), strict=True):
        for step, rate in found[label].items():
            result.put(f"rate_{short}_{step:g}".replace(".", "_"), single(rate))
    result.put("rate_slots_2_at_the_end", single(highest(begin)))
    rows = [
        [label, f"{step:g}", f"{rate:,.0f}"] for label, rates in found.items() for step, rate in rates.items()
    ]
    result.tables.append(Table("highest rate in time", ["of", "", "rows/s"], rows))
    result.plots.append(Plot("resources", partial(plots.draw_resources, found=found)))


def _holds(stand: Stand, asked: Mapping[str, Any]) -> Callable[[float], bool]:
    return lambda rate: stand.holds(BATCHIT, rate, **asked)


def privacy(stand: Stand, result: BenchResult, asked: Asked) -> None:
    """What the privacy operators promise, and what they cost."""
    stand.close()
    privacy_figures(result)


PARTS: Mapping[str, Callable[[Stand, BenchResult, Asked], None]] = {
    "sizes": sizes,
    "rates": rates,
    "step": step,
    "steady": steady,
    "triggers": triggers,
    "resources": resources,
    "privacy": privacy,
}


def _quick(stand: Stand, result: BenchResult, rate: float) -> None:
    """One rate on three sides: shows that everything works."""
    made = [stand.run(side, rate) for side in (BATCHIT, EDGEWISE[0])]
    for each in made:
        result.put(f"in_time_{each.side.replace('-', '_')}", single(each.in_time))
    result.put("planning_ms", planning_milliseconds(stages=50), at_most(20.0))
    result.tables.append(_table("rates", made))
    result.plots.append(Plot("rates", partial(plots.draw_rates, runs=made)))


def _table(title: str, runs: list[Run]) -> Table:
    names = list(runs[0].products) if runs else []
    rows = [
        [
            each.side,
            f"{each.rate:,.0f}",
            f"{each.in_time:.2%}",
            *(_cell(each.products[name]) for name in names),
        ]
        for each in runs
    ]
    return Table(title, ["side", "rows/s", "in time", *(f"{name}, p99 s" for name in names)], rows)


def _cell(product: Mapping[str, float]) -> str:
    """Share in time and p99; a run may be too short for any result to be due, and some may never come."""
    share, p99 = product["in_time"], product["p99"]
    shown = "none due" if share != share else f"{share:.1%}"
    return f"{shown} / {'never' if p99 >= NEVER_SECONDS else f'{p99:.2f}'}"
