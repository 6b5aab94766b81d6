"""Pictures like figure 2 of E2DF, and those of the other parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.demo.plots import plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from penstock.bench.elastic.stand import Run

COLOURS = {"split": "#009E73", "count": "#0072B2", "publish": "#D55E00"}
PLAIN, NODES = "#555555", "#CC79A7"


def draw_runs(figure: Figure, runs: Sequence[Run]) -> None:
    """For each run the rate, latency, replicas and nodes over the minutes of the paper (figure 2)."""
    figure.set_size_inches(4.2 * len(runs), 8.0)
    places = figure.subplots(4, len(runs), sharex="col", sharey="row", squeeze=False)
    for column, run in enumerate(runs):
        _draw_run([row[column] for row in places], run)
    for row, label in enumerate(("sentences a second", "latency, s", "replicas", "nodes")):
        places[row][0].set_ylabel(label)
        # Once all runs are there: it ends the search for the highest of them.
        places[row][0].set_ylim(bottom=0)


def _draw_run(places: Sequence[Axes], run: Run) -> None:
    rate, latency, replicas, nodes = places
    minute = run.scale.minute
    minutes = [number / 2 for number in range(int(2 * run.scale.minutes) + 1)]
    rate.plot(minutes, [run.scale.ramp.rate(each * minute) for each in minutes], color=PLAIN)
    plain_axes(rate, run.label)
    rate.title.set_fontsize(9)
    latency.plot(*zip(*run.counted.latencies.by_minute(minute), strict=True), color=PLAIN)
    at = [each["at"] / minute for each in run.samples]
    for name, colour in COLOURS.items():
        slots = [each["slots"].get(f"wordcount.{name}", 0) for each in run.samples]
        replicas.step(at, slots, where="post", color=colour, label=name)
    replicas.legend(frameon=False, fontsize=7)
    nodes.step(at, [each["nodes"] for each in run.samples], where="post", color=NODES)
    nodes.set_xlabel(f"minute (here {minute:g} s; emulated)")
    for axes in (latency, replicas, nodes):
        plain_axes(axes, "")


def draw_kills(
    figure: Figure, waiting: Sequence[tuple[float, int]], kills: Sequence[float], recovered: Sequence[float]
) -> None:
    """The backlog, with a line at each kill and the time until it was as before."""
    axes = figure.subplots()
    axes.plot(*zip(*waiting, strict=True), color=PLAIN, linewidth=1)
    for at, seconds in zip(kills, recovered, strict=True):
        axes.axvline(at, color="#D55E00", linewidth=1)
        axes.axvspan(at, at + seconds, color="#f3d9c9", zorder=0)
    plain_axes(axes, "words on their way while workers are killed (emulated service)")
    axes.set_xlabel("s")
    axes.set_ylim(bottom=0)


def draw_curve(figure: Figure, curves: Mapping[str, Sequence[tuple[int, float]]], limit: float) -> None:
    """Throughput over nodes, against one node."""
    axes = figure.subplots()
    for label, points in curves.items():
        axes.plot(*zip(*points, strict=True), "o-", markersize=3, label=label)
    axes.axhline(limit, color=PLAIN, linewidth=1, linestyle="--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_axes(axes, "turns a second over nodes (simulated); dashed: one driver")
    axes.set_xlabel("nodes")
    axes.legend(frameon=False)


def draw_nodes(figure: Figure, rates: Mapping[str, Mapping[int, float]]) -> None:
    """PRED: the highest rate under a second, by nodes (figure 12 of EdgeWise)."""
    axes = figure.subplots()
    for label, by_nodes in rates.items():
        axes.plot(list(by_nodes), list(by_nodes.values()), "o-", label=label)
    plain_axes(axes, "PRED: highest rate with a mean latency under 1 s (emulated service)")
    axes.set_xlabel("nodes")
    axes.set_ylabel("rows a second")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
