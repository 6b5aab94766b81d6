"""`penstock profile FILE.py`: what turns of different sizes cost, for each stage; as a table and a picture.

The pipelines run on their replayed rows in segments of each size, with results going nowhere. What
is learned is kept in the state directory, where `penstock run` plans by it from the first row on.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from penstock.bench.batching.plots import draw_costs
from penstock.cli.interrupts import ended_by_signals
from penstock.cli.pipeline_file import load_pipelines
from penstock.cli.state_directory import DEFAULT
from penstock.measure.batch_costs import SIZES, BatchCost
from penstock.pipeline.rehearsal import let_go, let_wait


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
        let_go(pipeline)
        let_wait(pipeline)
    # That no plan could hold so many rows is of no interest here.
    logging.getLogger("penstock").setLevel(logging.ERROR)
    console = Console()
    console.print("starting Spark", highlight=False)
    from penstock.spark.engine import Engine
    from penstock.spark.sized_turns import batch_costs
    from penstock.spark.trace_feed import TraceFeed

    with (
        tempfile.TemporaryDirectory(prefix="penstock-profile-", ignore_cleanup_errors=True) as scratch,
        ended_by_signals(),
        TraceFeed(pipelines, Path(scratch) / "rows") as feed,
        Engine(
            state=Path(scratch) / "state",
            slots=args.slots,
            policy="random",
            consumption="planned",
            planning="1d",
        ) as engine,
    ):
        for pipeline in pipelines:
            engine.submit(pipeline)
        found = batch_costs(
            engine, args.sizes, args.seconds, feed, lambda text: console.print(text, highlight=False)
        )
        args.state.mkdir(parents=True, exist_ok=True)
        engine.keep_profiles(args.state)
    console.print(table(found))
    draw(found, args.picture)
    console.print(f"picture in {args.picture}; costs kept in {args.state}", highlight=False)
    return 0


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
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    draw_costs(figure, found)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
