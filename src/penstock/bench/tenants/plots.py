"""Pictures like figures 6 to 15 of Cameo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.bench.tenants.runs import Run
from penstock.bench.tenants.tables import place
from penstock.demo.plots import plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito: told apart by all readers.
COLOURS = {"fifo": "#D55E00", "fair": "#009E73", "gate": "#E69F00", "ours": "#0072B2"}
LABELS = {
    "fifo": "plain Spark, FIFO",
    "fair": "plain Spark, FAIR",
    "gate": "our gate, fifo",
    "ours": "Penstock",
}
JOB_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
LEAST_SECONDS = 0.05  # the log axes begin here


def draw_latency(figure: Figure, runs: Sequence[Run], across: str) -> None:
    """Median and 99th percentile of the urgent results at each step (figures 7, 8, 10, 11, 13 to 15)."""
    both = figure.subplots(1, 2, sharey=True)
    steps = list(dict.fromkeys(_step(run, across) for run in runs))
    for axes, name, share in zip(both, ("median", "99th percentile"), (0.5, 0.99), strict=True):
        _bars(axes, runs, across, steps, share)
        plain_axes(axes, f"urgent results, {name}")
        axes.set_xlabel(across)
        axes.axhline(runs[0].jobs[0].job.target_seconds, color="#444444", linestyle="--", linewidth=1)
    # When both are drawn: they share their limits.
    for axes in both:
        _seconds_axis(axes)
    both[0].set_ylabel("latency, s")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)


def _seconds_axis(axes: Axes) -> None:
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    axes.set_yscale("log")
    axes.set_ylim(bottom=LEAST_SECONDS)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _step(run: Run, across: str) -> str:
    return run.load.jobs[0].query if across == "query" else place(run, across)


def _bars(axes: Axes, runs: Sequence[Run], across: str, steps: Sequence[str], share: float) -> None:
    sides = [side for side in COLOURS if side in {run.side for run in runs}]
    width = 0.8 / len(sides)
    for number, side in enumerate(sides):
        own = [run for run in runs if run.side == side]
        places = [steps.index(_step(run, across)) + (number - (len(sides) - 1) / 2) * width for run in own]
        heights = [max(run.urgent.latency(share), LEAST_SECONDS) for run in own]
        axes.bar(places, heights, width * 0.9, color=COLOURS[side], label=LABELS[side])
    long = max(map(len, steps)) > 8
    axes.set_xticks(range(len(steps)), steps, rotation=30 if long else 0, ha="right" if long else "center")
    axes.tick_params(axis="x", labelsize=8)


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
