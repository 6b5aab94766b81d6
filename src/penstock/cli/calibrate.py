"""`penstock calibrate FILE.py`: finds latency targets of pipelines, by running them at half their load.

Results go nowhere, so that none of the trial stand among real ones: what a sink itself takes is not in them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
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


@dataclass(frozen=True)
class Calibrated:
    """What was seen at one sink, and the target that follows."""

    pipeline: str
    sink: str
    results: float
    p50: float
    p95: float

    @property
    def target_seconds(self) -> float:
        return TIMES_P95 * self.p95


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.py", help="declares the pipelines")
    parser.add_argument("--warmup", type=float, default=60.0, metavar="S", help="default: %(default)g s")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="measured: %(default)g s")
    parser.add_argument("--slots", type=int, default=None, help="turns at a time (default: the cores)")
    parser.add_argument(
        "--as-is", action="store_true", help="the sources run at half load already, and are left as they are"
    )


def run(args: argparse.Namespace) -> int:
    pipelines = load_pipelines(args.file)
    if not args.as_is:
        for pipeline in pipelines:
            halve(pipeline)
    for pipeline in pipelines:
        let_go(pipeline)
    console = Console()
    console.print("starting Spark", highlight=False)
    from penstock.spark.engine import Engine

    with (
        tempfile.TemporaryDirectory(prefix="penstock-calibrate-", ignore_cleanup_errors=True) as state,
        ended_by_signals(),
        Engine(state=state, slots=args.slots) as engine,
    ):
        for pipeline in pipelines:
            engine.submit(pipeline)
        found = measured(engine, args.warmup, args.seconds, console)
    console.print(table(found))
    return 0


def halve(pipeline: Pipeline) -> None:
    """Lets the pipeline's sources give half as many rows."""
    for node in tuple(pipeline.nodes.values()):
        if isinstance(node, Source):
            pipeline.exchange(replace(node, spec=_half(pipeline, node)))


def _half(pipeline: Pipeline, node: Source) -> SourceSpec:
    spec = node.spec
    if isinstance(spec, Replay):
        return replace(spec, rows_per_second=spec.rows_per_second / 2)
    if isinstance(spec, Rate):
        return replace(spec, rows_per_second=max(spec.rows_per_second // 2, 1))
    raise PenstockError(
        f"source {node.name!r} of pipeline {pipeline.name!r} must be a Replay or a Rate to be halved, got "
        f"{type(spec).__name__}: feed it at half its load, and give --as-is"
    )


def measured(engine: Engine, warmup: float, seconds: float, console: Console) -> list[Calibrated]:
    """What comes at the sinks after the warm-up."""
    _wait(engine, warmup, "warming up", console)
    before = {(each.pipeline, each.sink): each.latency.to_json() for each in engine.sinks()}
    _wait(engine, seconds, "measuring", console)
    found = []
    for each in engine.sinks():
        fresh = each.latency.since(LatencyHistogram.from_json(before[each.pipeline, each.sink]))
        if not fresh.count:
            raise PenstockError(
                f"sink {each.sink!r} of pipeline {each.pipeline!r} must get results within {seconds:g} s, "
                "got none: measure longer than its windows are (--seconds)"
            )
        p50, p95 = fresh.quantile(0.5), fresh.quantile(0.95)
        found.append(Calibrated(each.pipeline, each.sink, fresh.count, p50, p95))
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
    for column in ("results", "p50 s", "p95 s", "target s"):
        shown.add_column(column, justify="right")
    for each in found:
        figures = (f"{each.results:,.0f}", f"{each.p50:.3f}", f"{each.p95:.3f}", f"{each.target_seconds:.2f}")
        shown.add_row(each.pipeline, each.sink, *figures)
    return shown
