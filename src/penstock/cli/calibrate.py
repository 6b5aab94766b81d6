"""`penstock calibrate FILE.py`: finds latency targets of pipelines, by running them at half load.

A trial at half their rates tells how busy that makes the slots; rates are then scaled to the load asked for.
Results go nowhere, so that none of the trial stand among real ones: what a sink itself takes is not in them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from penstock.cli.interrupts import ended_by_signals
from penstock.cli.pipeline_file import load_pipelines
from penstock.errors import PenstockError
from penstock.measure.histogram import LatencyHistogram
from penstock.pipeline.endpoints import SourceSpec
from penstock.pipeline.nodes import Source
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.rehearsal import let_go
from penstock.pipeline.sources import Rate, Replay

if TYPE_CHECKING:
    from penstock.spark.engine import Engine

TIMES_P95 = 2.0
"""As Cameo does (NSDI 2021, section 6): a target is twice the 95th percentile at half load."""
MOST_FACTOR = 100.0


@dataclass(frozen=True)
class Calibrated:
    """What was seen at one sink, and the target that follows."""

    pipeline: str
    sink: str
    results: float
    p50: float
    p95: float
    busy: float
    """The share of the slots' time that turns took meanwhile."""

    @property
    def target_seconds(self) -> float:
        return TIMES_P95 * self.p95


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.py", help="declares the pipelines")
    parser.add_argument("--warmup", type=float, default=60.0, metavar="S", help="default: %(default)g s")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="measured: %(default)g s")
    parser.add_argument("--slots", type=int, default=None, help="turns at a time (default: the cores)")
    parser.add_argument(
        "--load",
        type=_share,
        default=0.5,
        metavar="SHARE",
        help="share of the slots' time that turns are to take (default: %(default)g)",
    )
    parser.add_argument(
        "--as-is", action="store_true", help="the sources run at half load already, and are left as they are"
    )


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {text!r}")
    return share


def run(args: argparse.Namespace) -> int:
    pipelines = load_pipelines(args.file)
    for pipeline in pipelines:
        let_go(pipeline)
    console = Console()
    console.print("starting Spark", highlight=False)
    with ended_by_signals():
        if not args.as_is:
            _rescale(pipelines, 0.5)
            with _running(pipelines, args.slots) as engine:
                _wait(engine, args.warmup, "warming up the trial", console)
                busy = busy_share(engine, args.seconds, console)
            factor = towards(args.load, busy)
            console.print(f"at half of their rates slots are busy for {busy:.0%}: rates times {factor:.2g}")
            _rescale(pipelines, factor)
        with _running(pipelines, args.slots) as engine:
            found = measured(engine, args.warmup, args.seconds, console)
    console.print(table(found))
    return 0


@contextmanager
def _running(pipelines: Sequence[Pipeline], slots: int | None) -> Iterator[Engine]:
    from penstock.spark.engine import Engine

    with (
        tempfile.TemporaryDirectory(prefix="penstock-calibrate-", ignore_cleanup_errors=True) as state,
        Engine(state=state, slots=slots) as engine,
    ):
        for pipeline in pipelines:
            engine.submit(pipeline)
        yield engine


def towards(load: float, busy: float) -> float:
    """By how much rates are to be scaled for slots that are `busy` to be so for `load`.

    Turns of many rows cost less a row, so that it rather falls short; slots that are busy all the time may be
    far behind, and no more can be said than that.

    >>> towards(0.5, 0.025), towards(0.5, 0.8), towards(0.5, 1.0), towards(0.5, 0.0)
    (20.0, 0.625, 0.5, 100.0)
    """
    return min(load / max(busy, 1e-9), MOST_FACTOR)


def busy_share(engine: Engine, seconds: float, console: Console) -> float:
    """The share of the slots' time that turns took, of the next `seconds`."""
    before, begun = _slot_seconds(engine), time.monotonic()
    _wait(engine, seconds, "measuring", console)
    spent = time.monotonic() - begun
    return min((_slot_seconds(engine) - before) / (spent * engine.pool_slots), 1.0)


def _slot_seconds(engine: Engine) -> float:
    return sum(tenant.slot_seconds for tenant in engine.tenants())


def _rescale(pipelines: Sequence[Pipeline], factor: float) -> None:
    for pipeline in pipelines:
        scale(pipeline, factor)


def scale(pipeline: Pipeline, factor: float) -> None:
    """Lets the pipeline's sources give so many times their rows."""
    for node in tuple(pipeline.nodes.values()):
        if isinstance(node, Source):
            pipeline.exchange(replace(node, spec=_scaled(pipeline, node, factor)))


def _scaled(pipeline: Pipeline, node: Source, factor: float) -> SourceSpec:
    spec = node.spec
    if isinstance(spec, Replay):
        return replace(spec, rows_per_second=spec.rows_per_second * factor)
    if isinstance(spec, Rate):
        return replace(spec, rows_per_second=max(int(spec.rows_per_second * factor), 1))
    raise PenstockError(
        f"source {node.name!r} of pipeline {pipeline.name!r} must be a Replay or a Rate to be scaled, got "
        f"{type(spec).__name__}: feed it at half its load, and give --as-is"
    )


def measured(engine: Engine, warmup: float, seconds: float, console: Console) -> list[Calibrated]:
    """What comes at the sinks after the warm-up."""
    _wait(engine, warmup, "warming up", console)
    before = {(each.pipeline, each.sink): each.latency.to_json() for each in engine.sinks()}
    busy = busy_share(engine, seconds, console)
    found = []
    for each in engine.sinks():
        fresh = each.latency.since(LatencyHistogram.from_json(before[each.pipeline, each.sink]))
        if not fresh.count:
            raise PenstockError(
                f"sink {each.sink!r} of pipeline {each.pipeline!r} must get results within {seconds:g} s, "
                "got none: measure longer than its windows are (--seconds)"
            )
        p50, p95 = fresh.quantile(0.5), fresh.quantile(0.95)
        found.append(Calibrated(each.pipeline, each.sink, fresh.count, p50, p95, busy))
    return found


def _wait(engine: Engine, seconds: float, what: str, console: Console) -> None:
    end = time.monotonic() + seconds
    with console.status(what) as status:
        while (left := end - time.monotonic()) > 0:
            status.update(f"{what}: {left:.0f} s to go")
            for name, state in engine.pipelines.items():
                if state == "failed":
                    raise engine.error(name) or PenstockError(f"pipeline {name!r} failed")
            time.sleep(min(left, 0.5))


def table(found: list[Calibrated]) -> Table:
    shown = Table(title="targets: twice the p95 at half load", title_justify="left", box=box.SIMPLE)
    for column in ("pipeline", "sink"):
        shown.add_column(column)
    for column in ("results", "p50 s", "p95 s", "slots busy", "target s"):
        shown.add_column(column, justify="right")
    for each in found:
        latency = (f"{each.results:,.0f}", f"{each.p50:.3f}", f"{each.p95:.3f}")
        figures = (*latency, f"{each.busy:.0%}", f"{each.target_seconds:.2f}")
        shown.add_row(each.pipeline, each.sink, *figures)
    return shown
