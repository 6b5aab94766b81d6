"""The picture of `penstock plan`: latency against slots at every sink, and where the time goes."""

from __future__ import annotations

from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.plan.forecast import Forecast, forecast
from penstock.plan.forecast_models import POOL
from penstock.plan.slot_errors import SlotError
from penstock.plan.workflow import Workflow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MOST_STAGES = 24
AROUND = 3
"""Slots are shown up to so many times those of the plan."""


def draw(workflow: Workflow, chosen: Forecast, file: Path) -> None:
    """Writes the picture."""
    from matplotlib.figure import Figure

    shown = sorted(chosen.stages, key=lambda stage: -stage.busy_slots)[:MOST_STAGES]
    figure = Figure(figsize=(11, max(3.6, 0.28 * len(shown) + 1.6)), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_curves(left, workflow, chosen)
    _draw_stages(right, chosen, [stage.name for stage in shown])
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)


def curves(workflow: Workflow, most_slots: int) -> dict[str, list[tuple[int, float]]]:
    """For each sink, latency by slots, from the fewest that hold the load."""
    found: dict[str, list[tuple[int, float]]] = {product.name: [] for product in workflow.products}
    step = max(most_slots // 40, 1)
    for slots in range(1, most_slots + 1, step):
        try:
            sinks = forecast(workflow, slots).sinks
        except SlotError:
            continue
        for sink in sinks:
            if isfinite(sink.seconds):
                found[sink.name].append((slots, sink.seconds))
    return found


def _draw_curves(axes: Axes, workflow: Workflow, chosen: Forecast) -> None:
    most = max(AROUND * chosen.slots, len(workflow.stages) + 2)
    targets = {product.name: product.target_seconds for product in workflow.products}
    for number, (name, points) in enumerate(curves(workflow, most).items()):
        color = COLORS[number % len(COLORS)]
        axes.plot([slots for slots, _ in points], [s for _, s in points], "o-", ms=3, color=color, label=name)
        if targets[name] < inf:
            axes.axhline(targets[name], color=color, linestyle=":", linewidth=1)
    axes.axvline(chosen.slots, color="#888888", linewidth=1)
    axes.set_yscale("log")
    axes.set_xlabel("slots (the line: as planned)")
    axes.set_ylabel("mean latency, s (dotted: target)")
    axes.legend(fontsize=8)


def _draw_stages(axes: Axes, chosen: Forecast, names: list[str]) -> None:
    stages = {stage.name: stage for stage in chosen.stages}
    places = list(range(len(names)))[::-1]
    axes.barh(places, [stages[name].seconds for name in names], height=0.6, color="#56B4E9")
    for place, name in zip(places, names, strict=True):
        stage = stages[name]
        slots = "shared" if stage.model == POOL else f"{stage.slots} slot{'s' if stage.slots > 1 else ''}"
        axes.annotate(
            f" {slots}, {stage.busy_slots:.2g} busy", (0, place), va="center", fontsize=8, color="#222222"
        )
    axes.set_yticks(places, names, fontsize=8)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"a row stays, s (with {chosen.slots} slots)")
