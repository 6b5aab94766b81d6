"""Seven slots, and service times that vary more than exponential ones: whose choice is best (figure 10)?"""

from __future__ import annotations

from penstock.bench.result import BenchResult, Plot, Table
from penstock.bench.scaling import plots
from penstock.bench.scaling.allocations import Tried, try_case
from penstock.bench.scaling.cases import BURSTY, shown
from penstock.bench.scaling.predictions import CHOSEN
from penstock.bench.scaling.stand import Stand
from penstock.bench.stats import single

MODELS = {"mmk": "M/M/k", "gigk": "GI/G/k", CHOSEN: "ours"}


def bursty(stand: Stand, result: BenchResult) -> None:
    tried = [try_case(stand, case, most_neighbours=3, rivals=tuple(MODELS)) for case in BURSTY]
    for kind in MODELS:
        good = [each.is_best(slots) for each in tried if (slots := _planned(each, kind)) is not None]
        result.put(f"bursty_best_{kind}", single(sum(good) / len(tried)))
    rows = [_row(each) for each in tried]
    columns = ["case", *(f"{name} chooses" for name in MODELS.values()), "best", "its s"]
    result.tables.append(Table("bursty service on 7 slots (emulated)", columns, rows))
    result.plots.append(Plot("bursty", lambda figure: plots.draw_bursty(figure, tried)))


def _planned(tried: Tried, kind: str) -> dict[str, int] | None:
    """What a kind of model recommends; None where it knows of no allocation that keeps up."""
    slots = tried.plans.get(kind, {}).get("slots")
    return slots if isinstance(slots, dict) else None


def _row(tried: Tried) -> list[str]:
    told = []
    for kind in MODELS:
        plan = tried.plans.get(kind, {})
        slots = plan.get("slots")
        ordered = {name: slots[name] for name in tried.case.stages} if isinstance(slots, dict) else None
        told.append(str(plan.get("error", "-")) if ordered is None else shown(ordered))
    return [tried.case.name, *told, shown(tried.best.slots), f"{tried.best.seconds:.2f}"]
