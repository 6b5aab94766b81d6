"""`penstock bench share`: urgent pipelines beside bulky ones, on three kinds of Spark and under Penstock."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.bench.result import BenchResult, BenchSettings, Plot, Table, at_least
from penstock.demo import live, plots, summary
from penstock.errors import PenstockError
from penstock.workloads.share_process import run_side
from penstock.workloads.share_run import ShareRun, ratio
from penstock.workloads.shared_pool import GROUPS, LOADS, SIDES, SLOTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TICK_SECONDS = 0.5
OURS = "penstock"
MARKS = {
    "p50_ratio_fifo": at_least(7.0),
    "p99_ratio_fifo": at_least(4.0),
    "p99_ratio_fair": at_least(2.0),
    "bulk_rows_ratio": at_least(1.0),
}
RIVALS = {"spark": "fifo", "tuned": "tuned", "fair": "fair"}


@dataclass(frozen=True)
class Plan:
    """How long each side runs, and which sides do."""

    warmup_seconds: float
    measured_seconds: float
    sides: tuple[str, ...]


FULL = Plan(60.0, 120.0, ("spark", "tuned", "fair", OURS))
# Within two minutes; too short for warm code, so its ratios only show that everything works.
QUICK = Plan(8.0, 18.0, ("spark", "fair", OURS))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--warmup", type=float, metavar="S", help="seconds of warm-up of each side")
    parser.add_argument("--measured", type=float, metavar="S", help="seconds measured of each side")


def run(settings: BenchSettings) -> BenchResult:
    """Runs the sides one after the other, each in a JVM of its own."""
    plan = chosen_plan(settings)
    runs = {key: _run_side(key, plan, settings) for key in plan.sides}
    wrong = [text for each in runs.values() for text in each.wrong_counts]
    if wrong:
        raise PenstockError(f"all counts must be exact, but {'; '.join(wrong[:3])}: the figures mean nothing")
    return result_of(runs, plan)


def chosen_plan(settings: BenchSettings) -> Plan:
    usual = QUICK if settings.quick else FULL
    warmup, measured = settings.option("warmup"), settings.option("measured")
    return Plan(
        usual.warmup_seconds if warmup is None else warmup,
        usual.measured_seconds if measured is None else measured,
        usual.sides,
    )


def _run_side(key: str, plan: Plan, settings: BenchSettings) -> ShareRun:
    side_run = ShareRun(SIDES[key], plan.warmup_seconds)
    view = live.Lines(settings.say, plan.measured_seconds)
    run_side(side_run, plan.measured_seconds, on_tick=view.show, tick_seconds=TICK_SECONDS)
    return side_run


def figures(runs: Mapping[str, ShareRun]) -> dict[str, float]:
    """Ratios of the rivals over ours, then the figures they come from, in seconds and rows."""
    ours = runs[OURS].group("urgent")
    told: dict[str, float] = {}
    for key, name in RIVALS.items():
        if key in runs:
            rival = runs[key].group("urgent")
            told[f"p50_ratio_{name}"] = ratio(rival.p50, ours.p50)
            told[f"p99_ratio_{name}"] = ratio(rival.p99, ours.p99)
    done = {key: each.group("bulky").share_done for key, each in runs.items()}
    told["bulk_rows_ratio"] = ratio(done[OURS], max(share for key, share in done.items() if key != OURS))
    for key, each in runs.items():
        told |= _absolute(RIVALS.get(key, "ours"), each)
    return told


def _absolute(name: str, side_run: ShareRun) -> dict[str, float]:
    urgent, bulky = side_run.group("urgent"), side_run.group("bulky")
    return {
        f"p50_s_{name}": urgent.p50,
        f"p99_s_{name}": urgent.p99,
        f"in_time_{name}": urgent.share_in_time,
        f"missing_{name}": float(urgent.missing),
        f"urgent_backlog_rows_{name}": float(urgent.backlog_rows),
        f"bulk_p50_s_{name}": bulky.p50,
        f"bulk_rows_{name}": float(bulky.rows_done),
        f"bulk_backlog_rows_{name}": float(bulky.backlog_rows),
    }


def result_of(runs: Mapping[str, ShareRun], plan: Plan) -> BenchResult:
    """Figures with their marks, a table of the sides, and the two plots."""
    result = BenchResult("share")
    for name, value in figures(runs).items():
        result.figures[name] = value
    result.marks |= MARKS
    ordered = list(runs.values())
    result.tables.append(
        Table("sides", summary.COLUMNS, [line.cells for line in summary.lines(ordered)]),
    )
    result.plots += [Plot("time", lambda figure: _draw_time(figure, ordered))]
    result.plots += [Plot("distribution", lambda figure: _draw_distribution(figure, ordered))]
    result.setup |= {
        "warmup_seconds": plan.warmup_seconds,
        "measured_seconds": plan.measured_seconds,
        "slots": SLOTS,
        "sides": {RIVALS.get(each.side.key, "ours"): each.side.what for each in ordered},
        "pipelines": {group: vars(next(load for load in LOADS if load.group == group)) for group in GROUPS},
        "latency": "from the moment the row that completes a window can be read until its result is at the "
        "sink; a result that is missing at the end counts with the time until then",
        "bulk_rows_ratio": "rows done by the end, of those that could have been read, over the better rival; "
        "a row is done when the batch that read it has delivered its result",
    }
    return result


def _draw_time(figure: Figure, runs: list[ShareRun]) -> None:
    axes = figure.add_subplot()
    plots.draw_over_time(axes, runs)
    figure.legend(loc="outside lower center", ncols=len(runs), frameon=False, markerscale=1.8)


def _draw_distribution(figure: Figure, runs: list[ShareRun]) -> None:
    axes = figure.add_subplot()
    plots.draw_distribution(axes, runs)
    figure.legend(loc="outside lower center", ncols=len(runs), frameon=False)
