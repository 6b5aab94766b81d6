"""Pictures like figures 6 to 15 of Cameo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.tenants.runs import Run
from penstock.bench.tenants.tables import place
from penstock.demo.plots import plain_axes
from penstock.workloads.tenants.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito: told apart by all readers.
COLOURS = {
    "fifo": "#D55E00",
    "fair": "#009E73",
    "gate": "#E69F00",
    "stages": "#CC79A7",
    "ours": "#0072B2",
    "realtime": "#56B4E9",
}
LABELS = {
    "fifo": "plain Spark, FIFO",
    "fair": "plain Spark, FAIR",
    "gate": "our gate, fifo",
    "stages": "Penstock, two stages a query",
    "ours": "Penstock",
    "realtime": "Spark's real-time mode",
}
JOB_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
LEAST_SECONDS = 0.05  # the log axes begin here


def draw_latency(figure: Figure, runs: Sequence[Run], across: str, group: Group = "urgent") -> None:
    """Median and 99th percentile of a group's results at each step (figures 7, 8, 11, 13 to 15)."""
    both = figure.subplots(1, 2, sharey=True)
    for axes, name, share in zip(both, ("median", "99th percentile"), (0.5, 0.99), strict=True):
        _bars(axes, runs, across, partial(_seconds, group=group, share=share))
        plain_axes(axes, f"{group} results, {name}")
        if group == "urgent":
            axes.axhline(runs[0].jobs[0].job.target_seconds, color="#444444", linestyle="--", linewidth=1)
    # When both are drawn: they share their limits.
    for axes in both:
        _seconds_axis(axes)
    both[0].set_ylabel("latency, s")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)


def draw_in_time(figure: Figure, runs: Sequence[Run], across: str) -> None:
    """Share of the urgent results within their target at each step (figure 10)."""
    axes = figure.add_subplot()
    plain_axes(axes, "urgent results in time")
    _bars(axes, runs, across, lambda run: run.urgent.in_time)
    axes.set_ylim(0, 1)
    axes.set_ylabel("share within the target")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)


def draw_overhead(figure: Figure, runs: Mapping[str, Run], marks: Mapping[str, float]) -> None:
    """Seconds of scheduling over seconds of turns, with what is allowed (figure 12)."""
    axes = figure.add_subplot()
    plain_axes(axes, "scheduling over execution")
    axes.bar(list(runs), [run.overhead_share for run in runs.values()], 0.5, color=COLOURS["ours"])
    for number, name in enumerate(runs):
        axes.hlines(marks[name], number - 0.4, number + 0.4, color="#444444", linestyle="--", linewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("share")


def _seconds(run: Run, group: Group, share: float) -> float:
    return max(run.group(group).latency(share), LEAST_SECONDS)


def _seconds_axis(axes: Axes) -> None:
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    axes.set_yscale("log")
    axes.set_ylim(bottom=LEAST_SECONDS)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _bars(axes: Axes, runs: Sequence[Run], across: str, height: Callable[[Run], float]) -> None:
    steps = list(dict.fromkeys(place(run, across) for run in runs))
    sides = [side for side in COLOURS if side in {run.side for run in runs}]
    width = 0.8 / len(sides)
    for number, side in enumerate(sides):
        own = [run for run in runs if run.side == side]
        places = [steps.index(place(run, across)) + (number - (len(sides) - 1) / 2) * width for run in own]
        axes.bar(places, [height(run) for run in own], width * 0.9, color=COLOURS[side], label=LABELS[side])
    long = max(map(len, steps)) > 8
    axes.set_xticks(range(len(steps)), steps, rotation=30 if long else 0, ha="right" if long else "center")
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel(across)


def draw_time(figure: Figure, runs: Sequence[Run]) -> None:
    """Each urgent result's latency over time (figure 9)."""
    axes = figure.add_subplot()
    plain_axes(axes, "urgent results over time")
    for run in runs:
        samples = [
            (at, max(latency, LEAST_SECONDS)) for job in run.urgent.jobs for at, latency, _ in job.samples
        ]
        across, up = ([pair[number] for pair in samples] for number in (0, 1))
        axes.scatter(across, up, s=8, color=COLOURS[run.side], label=LABELS[run.side], alpha=0.7)
    _seconds_axis(axes)
    axes.set_xlabel("seconds")
    axes.set_ylabel("latency, s")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)


def draw_throughput(figure: Figure, run: Run, window_seconds: int) -> None:
    """Rows done per second by each tenant (figure 6)."""
    axes = figure.add_subplot()
    plain_axes(axes, "throughput of three tenants, 20, 40 and 40 per cent of the tokens")
    for each, colour in zip(run.jobs, JOB_COLOURS, strict=False):
        firsts = range(0, len(each.done_by_second) - window_seconds + 1, window_seconds)
        rates = [
            sum(each.done_by_second[first : first + window_seconds]) / window_seconds for first in firsts
        ]
        axes.plot(list(firsts), rates, "o-", color=colour, markersize=3, label=f"{each.job.share:.0%}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")
    axes.set_ylabel("rows per second")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
