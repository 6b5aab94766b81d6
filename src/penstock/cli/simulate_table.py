"""The table and the picture of `penstock simulate`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from penstock.simulate.outcome import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KEEPS_UP_SHARE = 0.03
"""Of the simulated time, how much input may wait at the end."""
COLUMNS = (
    "\npolicy",
    "\nslots",
    "\nsink",
    "p50\ns",
    "p99\ns",
    "target\ns",
    "in time\n%",
    "busy\n%",
    "turns\n/s",
    "backlog\ns",
)
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")


@dataclass(frozen=True)
class Case:
    """One policy on one pool, and what each seed led to."""

    policy: str
    slots: int
    outcomes: tuple[Outcome, ...]

    @property
    def sinks(self) -> tuple[str, ...]:
        return tuple(self.outcomes[0].sinks)

    def quantiles(self, sink: str, q: float) -> list[float]:
        """Of each seed."""
        return [outcome.sinks[sink].latency.quantile(q) for outcome in self.outcomes]


def table(cases: Sequence[Case], title: str) -> Table:
    """One line for each sink of each case; the pool's figures stand in the first of them."""
    shown = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 0, 0, 1))
    for column in COLUMNS[:3]:
        shown.add_column(column, overflow="fold", min_width=len(column) - 1)
    for column in COLUMNS[3:]:
        shown.add_column(column, justify="right", no_wrap=True)
    for case in cases:
        for number, sink in enumerate(case.sinks):
            first = (case.policy, str(case.slots)) if number == 0 else ("", "")
            last = _pool_cells(case) if number == 0 else ("", "", "")
            shown.add_row(*first, sink, *_sink_cells(case, sink), *last)
    return shown


def _sink_cells(case: Case, sink: str) -> tuple[str, ...]:
    told = [outcome.sinks[sink] for outcome in case.outcomes]
    target = "" if told[0].target_seconds is None else f"{told[0].target_seconds:g}"
    if not all(each.latency.count for each in told):
        return ("none", "", target, "")
    in_time = _spread([100.0 * each.share_in_time for each in told])
    p50, p99 = (_spread(case.quantiles(sink, q)) for q in (0.5, 0.99))
    return (p50, p99, target, in_time if target else "")


def _pool_cells(case: Case) -> tuple[str, ...]:
    outcomes = case.outcomes
    turns = [sum(stage.turns for stage in each.stages.values()) / each.seconds for each in outcomes]
    return (
        _spread([100.0 * each.slots_busy for each in outcomes]),
        _spread(turns),
        _spread([each.backlog_seconds for each in outcomes]),
    )


def _spread(values: Sequence[float]) -> str:
    """The median and, where seeds differ, half the range."""
    middle, half = _short(median(values)), (max(values) - min(values)) / 2
    return middle if half <= 0.0005 * max(values) else f"{middle} ±{half:.1g}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def warnings(cases: Iterable[Case]) -> list[str]:
    """A sentence for each case in which rows pile up: its latency would grow with every further hour."""
    found = []
    for case in cases:
        worst = max(case.outcomes, key=lambda outcome: outcome.backlog_seconds)
        if worst.backlog_seconds > KEEPS_UP_SHARE * worst.seconds:
            stage = max(worst.stages.values(), key=lambda each: each.rows_waiting)
            found.append(
                f"{case.policy} on {case.slots} slots does not keep up: {worst.backlog_seconds:,.0f} s of "
                f"input wait at the end, most of it at {stage.stage}"
            )
    return found


def draw(cases: Sequence[Case], file: Path) -> None:
    """p50 and p99 of each sink: over slots where there are several sizes, else beside each other."""
    from matplotlib.figure import Figure

    sinks = cases[0].sinks
    across = min(len(sinks), 3)
    down = -(-len(sinks) // across)
    figure = Figure(figsize=(4.2 * across, 3.0 * down), layout="constrained")
    places = figure.subplots(down, across, squeeze=False).flatten()
    for place, sink in zip(places, sinks, strict=False):
        _draw_sink(place, sink, cases)
    for place in places[len(sinks) :]:
        place.set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)


def _draw_sink(axes: Axes, sink: str, cases: Sequence[Case]) -> None:
    policies = list(dict.fromkeys(case.policy for case in cases))
    sizes = list(dict.fromkeys(case.slots for case in cases))
    for number, policy in enumerate(policies):
        own = [case for case in cases if case.policy == policy]
        at = [sizes.index(case.slots) + 0.12 * (number - (len(policies) - 1) / 2) for case in own]
        middle, tail = ([median(case.quantiles(sink, q)) for case in own] for q in (0.5, 0.99))
        above = [most - least for least, most in zip(middle, tail, strict=True)]
        color = COLORS[number % len(COLORS)]
        axes.errorbar(
            at, middle, yerr=[[0.0] * len(at), above], fmt="o", capsize=3, color=color, label=policy
        )
    target = cases[0].outcomes[0].sinks[sink].target_seconds
    if target is not None:
        axes.axhline(target, color="0.6", linestyle=":", linewidth=1)
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_yscale("log")
    axes.set_title(sink, fontsize=9)
    axes.set_xlabel("slots")
    axes.set_ylabel("latency, s: p50 up to p99")
    axes.legend(fontsize=7, frameon=False)
