"""`penstock profile FILE.py`: what turns of different sizes cost, for each stage; as a table and a picture.

The pipelines run on more rows than they can hold, with results going nowhere, once for each batch size. What
is learned is kept in the state directory, where `penstock run` plans by it from the first row on.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from penstock.cli.calibrate import let_go
from penstock.cli.interrupts import ended_by_signals
from penstock.cli.pipeline_file import load_pipelines
from penstock.cli.state_directory import DEFAULT
from penstock.errors import PenstockError
from penstock.measure.turns import TurnRecord
from penstock.pipeline.nodes import Sink, Source
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.sources import Replay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from penstock.spark.engine import Engine

SIZES = (1, 10, 100, 1_000, 10_000)
ROWS_PER_SECOND = 100_000.0
LIMIT_BYTES = 32_000_000
ENOUGH_TURNS = 8
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class BatchCost:
    """Turns of about one size of one stage."""

    stage: str
    rows: int
    turns: int
    seconds: float
    """The median of them."""

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.py", help="declares the pipelines")
    parser.add_argument(
        "--state",
        type=Path,
        default=DEFAULT,
        metavar="DIR",
        help="whose runs shall know the costs (default: ./%(default)s); nothing else in it is touched",
    )
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default=SIZES,
        metavar="N,N,...",
        help=f"rows of a turn (default: {','.join(map(str, SIZES))})",
    )
    parser.add_argument("--seconds", type=float, default=15.0, help="at most, for each size (default: 15)")
    parser.add_argument("--slots", type=int, default=None, help="turns at a time (default: the cores)")
    parser.add_argument(
        "--picture", type=Path, default=Path("profile.png"), help="where it goes (default: %(default)s)"
    )


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        sizes = ()
    if not sizes or sizes[0] < 1:
        raise argparse.ArgumentTypeError(f"must be numbers of 1 or more with commas between, got {text!r}")
    return sizes


def run(args: argparse.Namespace) -> int:
    pipelines = load_pipelines(args.file)
    for pipeline in pipelines:
        flood(pipeline)
        let_go(pipeline)
        let_wait(pipeline)
    # More rows than can be held are what is wanted here.
    logging.getLogger("penstock").setLevel(logging.ERROR)
    console = Console()
    console.print("starting Spark", highlight=False)
    from penstock.spark.engine import Engine

    with (
        tempfile.TemporaryDirectory(prefix="penstock-profile-", ignore_cleanup_errors=True) as state,
        ended_by_signals(),
        Engine(
            state=state, slots=args.slots, policy="random", consumption="planned", planning="1d"
        ) as engine,
    ):
        for pipeline in pipelines:
            engine.submit(pipeline)
        found = measured(engine, args.sizes, args.seconds, lambda text: console.print(text, highlight=False))
        args.state.mkdir(parents=True, exist_ok=True)
        engine.keep_profiles(args.state)
    console.print(table(found))
    draw(found, args.picture)
    console.print(f"picture in {args.picture}; costs kept in {args.state}", highlight=False)
    return 0


def flood(pipeline: Pipeline) -> None:
    """Lets the pipeline's sources give rows as fast as they are taken."""
    for node in tuple(pipeline.nodes.values()):
        if not isinstance(node, Source):
            continue
        if not isinstance(node.spec, Replay):
            raise PenstockError(
                f"source {node.name!r} of pipeline {pipeline.name!r} must be a Replay to be profiled, got "
                f"{type(node.spec).__name__}: replay a sample of what it gives"
            )
        spec = replace(node.spec, rows_per_second=ROWS_PER_SECOND, limit_bytes=LIMIT_BYTES, loop=True)
        pipeline.exchange(replace(node, spec=spec))


def let_wait(pipeline: Pipeline) -> None:
    """Takes the targets off: nobody is to hear that they are not met."""
    for node in tuple(pipeline.nodes.values()):
        if isinstance(node, Sink):
            pipeline.exchange(replace(node, latency_seconds=None))


def measured(
    engine: Engine, sizes: Sequence[int], seconds: float, say: Callable[[str], None]
) -> list[BatchCost]:
    """The cost of each stage's turns at each size; a stage that never got so many rows is left out there."""
    stages = [report.stage for report in engine.stages()]
    records: list[TurnRecord] = []
    engine.on_turn(records.append)
    # Once with all sizes before anything counts: cold code is slow.
    for size in sizes:
        _run_at(engine, dict.fromkeys(stages, size), records, seconds / 3)
    found: list[BatchCost] = []
    for size in sizes:
        records.clear()
        _run_at(engine, dict.fromkeys(stages, size), records, seconds)
        costs = costs_of(tuple(records), size)
        say(f"{size:,} rows a turn: {len(costs)} of {len(stages)} stages had such turns")
        found += costs
    # What is learned fades within some turns: all sizes once more, so that it knows of all.
    for size in (*sizes, *sizes):
        records.clear()
        _run_at(engine, dict.fromkeys(stages, size), records, seconds / 3, turns=2)
    return sorted(found, key=lambda each: (stages.index(each.stage), each.rows))


def _run_at(
    engine: Engine,
    sizes: dict[str, int],
    records: list[TurnRecord],
    seconds: float,
    turns: int = ENOUGH_TURNS,
) -> None:
    """Until every stage has had enough turns, or the time is up."""
    engine.fix_batches(sizes)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
        for name, state in engine.pipelines.items():
            if state == "failed":
                raise engine.error(name) or PenstockError(f"pipeline {name!r} failed")
        taken = [record.stage for record in tuple(records) if record.rows_in >= sizes[record.stage]]
        if all(taken.count(stage) >= turns for stage in sizes):
            return


def costs_of(records: Sequence[TurnRecord], size: int) -> list[BatchCost]:
    """The median of the turns that had about that size, for each stage."""
    by_stage: dict[str, list[float]] = {}
    for record in records:
        if 0.5 * size <= record.rows_in <= 1.5 * size:
            by_stage.setdefault(record.stage, []).append(record.turn_seconds)
    return [
        BatchCost(stage, size, len(seconds), median(seconds))
        for stage, seconds in by_stage.items()
        if len(seconds) >= 2
    ]


def table(found: Sequence[BatchCost]) -> Table:
    shown = Table(title="turns by size", title_justify="left", box=box.SIMPLE)
    shown.add_column("stage")
    for column in ("rows", "turns", "turn ms", "ms a row", "rows/s"):
        shown.add_column(column, justify="right")
    for each in found:
        milliseconds = 1000 * each.seconds
        figures = (f"{milliseconds:,.0f}", f"{milliseconds / each.rows:.3g}", f"{each.rows_per_second:,.0f}")
        shown.add_row(each.stage, f"{each.rows:,}", str(each.turns), *figures)
    return shown


def draw(found: Sequence[BatchCost], file: Path) -> None:
    """Throughput and length of turns against their size, one picture for each stage (BatchIT, figure 1)."""
    from matplotlib.figure import Figure

    stages = list(dict.fromkeys(each.stage for each in found))
    across = min(len(stages), 3) or 1
    down = -(-len(stages) // across) or 1
    figure = Figure(figsize=(4.2 * across, 3.0 * down), layout="constrained")
    places = figure.subplots(down, across, squeeze=False).flatten()
    for place, stage in zip(places, stages, strict=False):
        _draw_stage(place, stage, [each for each in found if each.stage == stage])
    for place in places[len(stages) :]:
        place.set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)


def _draw_stage(axes: Axes, stage: str, costs: Sequence[BatchCost]) -> None:
    rows = [each.rows for each in costs]
    axes.plot(rows, [each.rows_per_second for each in costs], "o-", color="#0072B2")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(stage, fontsize=9)
    axes.set_xlabel("rows a turn")
    axes.set_ylabel("rows/s", color="#0072B2")
    beside = axes.twinx()
    beside.plot(rows, [1000 * each.seconds for each in costs], "s--", color="#D55E00")
    beside.set_ylabel("turn, ms", color="#D55E00")
    beside.set_ylim(bottom=0)
