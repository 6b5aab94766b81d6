"""Pictures like figures 6 to 10 of DRS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, Any

from penstock.bench.scaling.cases import shown
from penstock.bench.scaling.predictions import CHOSEN
from penstock.demo.plots import plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from penstock.bench.scaling.allocations import Tried
    from penstock.bench.scaling.stand import Run

COLOURS = {"vld": "#0072B2", "fpd": "#D55E00", "chain": "#009E73", "two-path": "#CC79A7", "loop": "#E69F00"}
LABELS = {"mmk": "M/M/k", "gigk": "GI/G/k", CHOSEN: "ours"}
SHADES = ("#0072B2", "#D55E00", "#009E73")


def draw_allocations(figure: Figure, tried: Sequence[Tried]) -> None:
    """Measured E[T] of each allocation; what was recommended is dark (figure 6)."""
    first = {each.case.topology: each for each in tried}
    places = figure.subplots(1, len(first), squeeze=False)[0]
    for axes, each in zip(places, first.values(), strict=True):
        runs = sorted(each.runs, key=lambda run: shown(run.slots))
        colours = ["#0072B2" if dict(run.slots) == dict(each.recommended) else "#b9d4e6" for run in runs]
        axes.bar(range(len(runs)), [run.seconds for run in runs], color=colours)
        axes.set_xticks(range(len(runs)), [shown(run.slots) for run in runs], rotation=90, fontsize=7)
        plain_axes(axes, each.case.name)
        axes.title.set_fontsize(8)
    places[0].set_ylabel("E[T] measured, s (emulated)")


def draw_predicted(figure: Figure, tried: Sequence[Tried]) -> None:
    """Predicted against measured (figure 7)."""
    axes = figure.subplots()
    for name, colour in COLOURS.items():
        own = [pair for each in tried if each.case.topology == name for pair in each.pairs(CHOSEN)]
        pairs = [pair for pair in own if pair[0] < inf]
        if pairs:
            axes.plot(*zip(*pairs, strict=True), "o", color=colour, label=name, markersize=4)
    low, high = axes.get_xlim()
    axes.plot([low, high], [low, high], color="#999999", linewidth=1)
    plain_axes(axes, "predicted and measured E[T] (emulated service)")
    axes.set_xlabel("predicted, s")
    axes.set_ylabel("measured, s")
    axes.legend(frameon=False)


def draw_convergence(figure: Figure, ended: Mapping[str, Sequence[Run]], minute: float) -> None:
    """E[T] by minute from three starts (figure 8)."""
    places = figure.subplots(1, len(ended), squeeze=False)[0]
    for axes, (name, runs) in zip(places, ended.items(), strict=True):
        for run, colour in zip(runs, SHADES, strict=False):
            axes.plot(*_line(run), color=colour, label=f"from {shown(run.slots)}")
            for at in _changed(run, minute):
                axes.axvline(at, color=colour, linewidth=1, linestyle=":")
        plain_axes(axes, f"{name}: E[T] by minute")
        axes.set_xlabel(f"minute (here {minute:g} s)")
        axes.legend(frameon=False, fontsize=8)
    places[0].set_ylabel("s (emulated)")


def draw_control(
    figure: Figure,
    runs: Mapping[str, tuple[Sequence[tuple[float, float]], Run]],
    minute: float,
    target: float,
) -> None:
    """The rate of inputs above, E[T] by minute below, changes of slots as lines (figure 9)."""
    places = figure.subplots(2, len(runs), sharex="col", squeeze=False, height_ratios=(1, 2))
    for column, (name, (rates, run)) in enumerate(runs.items()):
        above, below = places[0][column], places[1][column]
        edges = [0.0, *accumulate(length for _, length in rates)]
        above.stairs([rate for rate, _ in rates], edges, color="#555555")
        plain_axes(above, f"inputs a second, {name}")
        below.plot(*_line(run), color="#0072B2")
        below.axhline(target, color="#D55E00", linewidth=1, linestyle="--")
        for at in _changed(run, minute):
            below.axvline(at, color="#009E73", linewidth=1)
        plain_axes(below, "E[T] by minute, s (emulated)")
        below.set_xlabel(f"minute (here {minute:g} s)")


def draw_bursty(figure: Figure, tried: Sequence[Tried]) -> None:
    """Measured, and what each model says, for every allocation (figure 10)."""
    places = figure.subplots(1, len(tried), squeeze=False)[0]
    for axes, each in zip(places, tried, strict=True):
        columns: dict[str, list[float]] = {"measured": [run.seconds for run in each.runs]}
        for kind, label in LABELS.items():
            columns[label] = [
                said if (said := told.get(kind)) is not None else 0.0 for told in each.predicted
            ]
        width = 0.8 / len(columns)
        for place, (label, values) in enumerate(columns.items()):
            axes.bar([at + place * width for at in range(len(values))], values, width, label=label)
        axes.set_xticks(
            [at + 0.4 - width / 2 for at in range(len(each.runs))], [shown(run.slots) for run in each.runs]
        )
        plain_axes(axes, each.case.name)
        axes.legend(frameon=False, fontsize=8)
    places[0].set_ylabel("E[T], s (emulated)")


def _line(run: Run) -> tuple[list[float], list[float]]:
    known = [(place + 0.5, each) for place, each in enumerate(run.told["by_interval"]) if each is not None]
    return [at for at, _ in known], [seconds for _, seconds in known]


def _changed(run: Run, minute: float) -> list[float]:
    decisions: Sequence[Mapping[str, Any]] = run.told["decisions"]
    return [each["at"] / minute for each in decisions if each.get("changes")]
