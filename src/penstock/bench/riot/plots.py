"""Pictures like figures 7 to 11 of EdgeWise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from penstock.bench.result import Plot
from penstock.bench.riot.compare import CONSTANT, OWN_POLICY, Comparison
from penstock.bench.riot.figures import BALANCE_TOPOLOGY
from penstock.bench.riot.steps import LATENCY_LIMIT_SECONDS, Curve, Step
from penstock.demo.plots import plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito: told apart by all readers.
PLAIN_COLOUR, OWN_COLOUR, CONSTANT_COLOUR = "#D55E00", "#0072B2", "#009E73"
OTHER_COLOURS = (CONSTANT_COLOUR, "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#F0E442", "#000000")
PARTS = (("queue_seconds", "#0072B2"), ("schedule_seconds", "#E69F00"), ("compute_seconds", "#009E73"))


def plots_of(made: Mapping[str, Comparison]) -> list[Plot]:
    """One picture of the curves of each topology; then utilisation, queue times and consumption."""
    found = [Plot(f"{name}-latency", partial(draw_latency, one=one)) for name, one in made.items()]
    studied = made.get(BALANCE_TOPOLOGY)
    if studied is not None:
        found.append(Plot("utilisation", lambda figure: draw_utilisation(figure, studied)))
        found.append(Plot("times", lambda figure: draw_times(figure, studied)))
    for name, one in made.items():
        if one.consumptions:
            found.append(Plot(f"{name}-consumption", partial(draw_consumption, one=one)))
    return found


def draw_latency(figure: Figure, one: Comparison) -> None:
    """Mean latency over throughput at the sink (figure 7)."""
    axes = _axes(figure, f"{one.job.topology.upper()}: mean latency over throughput")
    # Beside the searches, what both sides took at the rival's rate.
    own = Curve((*(step for _, step in one.in_turn[-1:]), *one.ours.steps, *one.again))
    curves = {"plain Spark": one.plain, OWN_POLICY: own}
    curves |= {name: curve for name, curve in one.policies.items() if name != OWN_POLICY}
    if one.fused is not None:
        curves["fused"] = one.fused
    for (name, curve), colour in zip(
        curves.items(), (PLAIN_COLOUR, OWN_COLOUR, *OTHER_COLOURS), strict=False
    ):
        _line(axes, name, curve, colour)
    _limits(axes, figure)


def draw_consumption(figure: Figure, one: Comparison) -> None:
    """The same for each rule of how many rows a turn takes (figure 11)."""
    axes = _axes(figure, f"{one.job.topology.upper()}: rows that a turn takes")
    curves = {"plain Spark": one.plain, **one.consumptions}
    for (name, curve), colour in zip(
        curves.items(), (PLAIN_COLOUR, OWN_COLOUR, *OTHER_COLOURS), strict=False
    ):
        _line(axes, name, curve, colour)
    _limits(axes, figure)


def _line(axes: Axes, name: str, curve: Curve, colour: str) -> None:
    """Steps that kept up make the line; what a step published that did not is no throughput, but shown."""
    steps = [step for step in curve.by_rate if step.published_per_second > 0]
    good = [(step.published_per_second, step.mean) for step in steps if step.keeps_up]
    bad = [(step.published_per_second, step.mean) for step in steps if not step.keeps_up]
    across, up = zip(*good, strict=True) if good else ((), ())
    axes.plot(across, up, "o-", color=colour, markersize=4, linewidth=1.4, label=name)
    if bad:
        axes.plot(*zip(*bad, strict=True), "x", color=colour, markersize=4)


def _limits(axes: Axes, figure: Figure) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.axhline(LATENCY_LIMIT_SECONDS, color="#444444", linestyle="--", linewidth=1)
    axes.set_xlabel("rows published per second")
    axes.set_ylabel("mean latency, s")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)


def draw_utilisation(figure: Figure, one: Comparison) -> None:
    """Coefficient of variation of the stages' utilisation over the input rate (figure 8)."""
    axes = _axes(figure, f"{one.job.topology.upper()}: how unevenly stages are utilised")
    plain, constant = ([pair[place] for pairs in (one.low, one.high) for pair in pairs] for place in (0, 1))
    sides = (
        ("plain Spark", (*one.plain.steps, *plain), PLAIN_COLOUR),
        (f"{OWN_POLICY}, all that waits", (*one.ours.steps, *one.whole), OWN_COLOUR),
        (f"{OWN_POLICY}, {CONSTANT}", constant, CONSTANT_COLOUR),
    )
    for name, steps, colour in sides:
        by_rate: dict[float, list[float]] = {}
        for step in steps:
            if step.utilisation_cv is not None:
                by_rate.setdefault(step.rate, []).append(step.utilisation_cv)
        known = [(rate, median(each)) for rate, each in sorted(by_rate.items())]
        rates, found = zip(*known, strict=True) if known else ((), ())
        axes.plot(rates, found, "o-", color=colour, markersize=4, label=name)
    axes.set_xscale("log")
    axes.set_xlabel("input rows per second")
    axes.set_ylabel("coefficient of variation of utilisation")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)


def draw_times(figure: Figure, one: Comparison) -> None:
    """T_Q, T_S and T_C of each stage at a low, a middle and a high rate, on both sides (figures 9 and 10)."""
    at_rates = [pairs[-1] for pairs in (one.in_turn, one.low, one.at_most) if pairs]
    both = figure.subplots(1, 2, sharey=True)
    for place, (axes, title) in enumerate(zip(both, ("plain Spark", OWN_POLICY), strict=True)):
        _bars(axes, [pair[place] for pair in at_rates])
        plain_axes(axes, title)
    rates = ", ".join(f"{own.rate:,.0f}" if own.rate >= 10 else f"{own.rate:.1f}" for _, own in at_rates)
    both[0].set_ylabel(f"seconds of a row at\n{rates} rows/s")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles[:3], labels[:3], loc="outside lower center", ncols=3, frameon=False)


def _bars(axes: Axes, steps: Sequence[Step]) -> None:
    """For each stage a bar for each rate, side by side."""
    names = list(steps[-1].stages)
    width = 0.8 / len(steps)
    for number, step in enumerate(steps):
        places = [at + (number - (len(steps) - 1) / 2) * width for at in range(len(names))]
        below = [0.0] * len(names)
        for (part, colour), label in zip(PARTS, ("queue T_Q", "schedule T_S", "compute T_C"), strict=True):
            heights = [step.stages[name][part] for name in names]
            axes.bar(places, heights, 0.9 * width, bottom=below, color=colour, label=label)
            below = [low + height for low, height in zip(below, heights, strict=True)]
    shown: Sequence[str] = [name.split(".", 1)[-1] for name in names]
    axes.set_xticks(range(len(names)), shown, rotation=40, ha="right", fontsize=8)


def _axes(figure: Figure, title: str) -> Axes:
    axes = figure.add_subplot()
    plain_axes(axes, title)
    return axes
