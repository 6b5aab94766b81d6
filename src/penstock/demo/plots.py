"""Pictures of how long urgent results took on each side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.demo import words
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import GROUPS, LOADS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito: told apart by all readers.
COLOURS = {"spark": "#D55E00", "tuned": "#E69F00", "fair": "#009E73", "penstock": "#0072B2"}
TARGET_COLOUR = "#444444"
URGENT = tuple(load for load in LOADS if load.group == "urgent")
TARGET_SECONDS = URGENT[0].target_seconds
TARGET_TEXT = f"target {words.target(TARGET_SECONDS)}"
TARGET_STYLE: dict[str, Any] = {"color": TARGET_COLOUR, "fontsize": 9}
LEAST_SECONDS = 0.01  # the log axes begin here


def _seconds_axis(axis: object) -> None:
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: words.target(round(value, 4))))  # type: ignore[attr-defined]


def plain_axes(axes: Axes, title: str) -> None:
    """A title at the left, a light grid, no frame: how every picture looks."""
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.grid(True, which="major", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)


def _scatter(axes: Axes, run: ShareRun) -> None:
    begin, end = run.started_at or 0.0, run.ended_at or 0.0
    colour = COLOURS[run.side.key]
    samples = [each for load in URGENT for each in run.samples(load, begin, end)]
    for missing in (False, True):
        chosen = [each for each in samples if each.missing is missing]
        axes.scatter(
            [each.completed_at - begin for each in chosen],
            [max(each.latency_seconds, LEAST_SECONDS) for each in chosen],
            s=14,
            linewidths=0.9,
            facecolors="none" if missing else colour,
            edgecolors=colour if missing else "none",
            alpha=0.75,
            label=None if missing else run.side.label,
        )


def draw_over_time(axes: Axes, runs: Sequence[ShareRun]) -> None:
    """Latency of each urgent result, by when its window was complete; the warm-up is shaded."""
    for run in runs:
        _scatter(axes, run)
    warmup = max(run.warmup_seconds for run in runs)
    axes.axvspan(0, warmup, color="#f2f2f2", zorder=0)
    bottom = axes.get_xaxis_transform()
    axes.text(warmup / 2, 0.02, "warm-up", transform=bottom, ha="center", va="bottom", color="#888888")
    axes.axhline(TARGET_SECONDS, color=TARGET_COLOUR, linestyle="--", linewidth=1)
    right = axes.get_yaxis_transform()
    axes.text(0.995, TARGET_SECONDS, TARGET_TEXT, transform=right, ha="right", va="bottom", **TARGET_STYLE)
    axes.set_yscale("log")
    axes.set_xlim(0, max((run.ended_at or 0.0) - (run.started_at or 0.0) for run in runs) * 1.01)
    _seconds_axis(axes.yaxis)
    axes.set_xlabel("seconds since the pipelines were started")
    axes.set_ylabel("latency of a window's result")
    plain_axes(axes, "Urgent results over time (hollow: still missing at the end)")


def draw_distribution(axes: Axes, runs: Sequence[ShareRun]) -> None:
    """Share of the urgent results that took at most so long, after the warm-up."""
    for run in runs:
        latencies = sorted(max(each, LEAST_SECONDS) for each in run.group("urgent").latencies)
        shares = [100 * (place + 1) / len(latencies) for place in range(len(latencies))]
        axes.step(
            latencies, shares, where="post", color=COLOURS[run.side.key], linewidth=2, label=run.side.label
        )
    axes.axvline(TARGET_SECONDS, color=TARGET_COLOUR, linestyle="--", linewidth=1)
    axes.text(TARGET_SECONDS * 0.95, 98, TARGET_TEXT, ha="right", va="top", rotation=90, **TARGET_STYLE)
    axes.set_xscale("log")
    axes.set_ylim(0, 101)
    _seconds_axis(axes.xaxis)
    axes.set_xlabel("latency of a window's result")
    axes.set_ylabel("results that took at most so long, %")
    plain_axes(axes, "Distribution of urgent results (missing ones with the time so far)")


def draw_in_time(axes: Axes, runs: Sequence[ShareRun]) -> None:
    """Share of results within their target, by group and side."""
    width = 0.8 / len(runs)
    for place, run in enumerate(runs):
        shares = [run.group(group).share_in_time for group in GROUPS]
        middles = [number + (place - (len(runs) - 1) / 2) * width for number in range(len(GROUPS))]
        heights = [0.0 if math.isnan(share) else 100 * share for share in shares]
        bars = axes.bar(middles, heights, width * 0.92, color=COLOURS[run.side.key], label=run.side.label)
        axes.bar_label(bars, [words.share(share) for share in shares], padding=2, fontsize=9)
    targets = {load.group: words.target(load.target_seconds) for load in LOADS}
    axes.set_xticks(range(len(GROUPS)), [f"{group}, target {targets[group]}" for group in GROUPS])
    axes.set_ylim(0, 112)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("results within their target, %")
    plain_axes(axes, "In time")


def save_picture(runs: Sequence[ShareRun], path: Path) -> Path:
    """Over time, distribution and shares in time on one light page."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure: Figure = pyplot.figure(figsize=(12, 8), layout="constrained", facecolor="white")
    try:
        grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1))
        over_time = figure.add_subplot(grid[0, :])
        draw_over_time(over_time, runs)
        draw_distribution(figure.add_subplot(grid[1, 0]), runs)
        draw_in_time(figure.add_subplot(grid[1, 1]), runs)
        handles, labels = over_time.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper right", ncols=len(runs), frameon=False, markerscale=1.8
        )
        figure.suptitle("Four urgent and four bulky pipelines on two slots", x=0.01, ha="left", fontsize=14)
        figure.savefig(path, dpi=110)
    finally:
        pyplot.close(figure)
    return path
