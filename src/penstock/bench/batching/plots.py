"""Pictures like figures 1 and 5 to 7 of BatchIT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.bench.batching.runs import SIDES, Run
from penstock.demo.plots import plain_axes
from penstock.measure.batch_costs import BatchCost, by_stage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AROUND = 1.4
"""Room above and below."""
WIDE = 20.0
"""Steps so many times as large need a logarithm."""
COLOURS = ("#0072B2", "#D55E00", "#E69F00", "#CC79A7", "#999999", "#56B4E9", "#009E73", "#F0E442", "#000000")


def draw_costs(figure: Figure, costs: Sequence[BatchCost]) -> None:
    """Throughput and length of turns against their size, one picture for each stage (figure 1)."""
    stages = by_stage(costs)
    across = min(len(stages), 3) or 1
    down = -(-len(stages) // across) or 1
    figure.set_size_inches(4.2 * across, 3.0 * down)
    places = figure.subplots(down, across, squeeze=False).flatten()
    for place, (stage, own) in zip(places, stages.items(), strict=False):
        _draw_stage(place, stage, own)
    for place in places[len(stages) :]:
        place.set_visible(False)


def _draw_stage(axes: Axes, stage: str, costs: Sequence[BatchCost]) -> None:
    rows = [each.rows for each in costs]
    axes.plot(rows, [each.rows_per_second for each in costs], "o-", color="#0072B2")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(stage, fontsize=9)
    axes.set_xlabel("rows a turn")
    axes.set_ylabel("rows/s", color="#0072B2")
    beside = axes.twinx()
    beside.plot(rows, [1000 * each.seconds for each in costs], "s--", color="#D55E00")
    beside.set_ylabel("turn, ms", color="#D55E00")
    beside.set_ylim(bottom=0)


def draw_rates(figure: Figure, runs: Sequence[Run]) -> None:
    """The share in time against the rate of arrivals, for each side (figure 5)."""
    axes = figure.subplots()
    names = [name for name in SIDES if any(run.side == name for run in runs)]
    for name, colour in zip(names, COLOURS, strict=False):
        points = sorted((run.rate, 100 * run.in_time) for run in runs if run.side == name)
        axes.plot(*zip(*points, strict=True), "o-", color=colour, label=SIDES[name].label, markersize=4)
    plain_axes(axes, "results within their target")
    axes.set_xscale("log")
    axes.set_xlabel("rows per second")
    axes.set_ylabel("mean over products, %")
    axes.set_ylim(0, 103)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def draw_triggers(figure: Figure, runs: Mapping[str, Run]) -> None:
    """What is late against the time spent on planning, for each trigger (figure 6)."""
    axes = figure.subplots()
    for (name, run), colour in zip(runs.items(), COLOURS, strict=False):
        spent, late = run.told["planning_seconds"], 100 * (1 - run.in_time)
        axes.plot([spent], [late], "o", color=colour, label=name, clip_on=False, alpha=0.8)
    plain_axes(axes, "when to plan anew")
    axes.set_xscale("log")
    axes.set_xlabel("seconds spent on planning")
    axes.set_ylabel("late, % (mean over products)")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def draw_resources(figure: Figure, found: Mapping[str, Mapping[float, float]]) -> None:
    """The highest rate against workers, epsilon and memory (figure 7)."""
    places = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, (label, rates) in zip(places, found.items(), strict=True):
        axes.plot(list(rates), list(rates.values()), "o-", color=COLOURS[0])
        plain_axes(axes, "")
        axes.set_xlabel(label)
        axes.set_yscale("log")
        if max(rates) > WIDE * min(rates):
            axes.set_xscale("log")
    highest = max(max(rates.values()) for rates in found.values())
    lowest = min(min(rates.values()) for rates in found.values())
    for axes in places:
        axes.set_ylim(lowest / AROUND, highest * AROUND)
    places[0].set_ylabel("highest rate in time, rows/s")
