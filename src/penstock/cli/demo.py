"""`penstock demo`: the same eight pipelines on plain Spark, then under Penstock, and a report of both."""

import argparse
import time
from pathlib import Path

from rich.console import Console

from penstock.bench.machine import machine_facts
from penstock.demo import words
from penstock.demo.live import pipelines_table, view_for
from penstock.demo.page import Report
from penstock.demo.plots import save_picture
from penstock.demo.summary import summary_table, verdict
from penstock.errors import PenstockError
from penstock.workloads.share_process import run_side
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import LOADS, SIDES, SLOTS

SIDES_SHOWN = ("spark", "penstock")
LEAST_SECONDS = 10.0
WARMUP_SHARE = 0.375
TICK_SECONDS = 0.25
PIPE_WIDTH = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=float, default=40.0, help="for each side, warm-up included (default: %(default)g)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("penstock-demo"),
        help="directory of the report (default: ./%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    if not args.seconds >= LEAST_SECONDS:
        raise PenstockError(
            f"a demo must run each side for at least {LEAST_SECONDS:g} s, got {args.seconds:g} s: "
            "no window of 10 s would end"
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH)
    machine = machine_facts()
    _introduce(console, args.seconds)
    runs: list[ShareRun] = []
    for key in SIDES_SHOWN:
        runs.append(_run_side(console, key, args.seconds, runs[0] if runs else None))
    console.print(summary_table(runs))
    console.print(f"\n{verdict(runs[0], runs[-1])}\n", style="bold")
    _write(console, runs, args, machine)
    return 0


def _introduce(console: Console, seconds: float) -> None:
    urgent, bulky = LOADS[0], LOADS[-1]
    console.print(
        f"Eight pipelines on {SLOTS} Spark slots, first on plain Spark, then under Penstock:\n"
        f"  4 urgent, {urgent.rows_per_second:,} rows/s each, {urgent.window_seconds} s windows, "
        f"result wanted within {words.target(urgent.target_seconds)}\n"
        f"  4 bulky,  {bulky.rows_per_second:,} rows/s each, {bulky.window_seconds} s windows, "
        f"result wanted within {words.target(bulky.target_seconds)}\n"
        f"Each side runs for {seconds:.0f} s. Ctrl-C ends it all.\n"
    )


def _run_side(console: Console, key: str, seconds: float, before: ShareRun | None) -> ShareRun:
    warmup = round(seconds * WARMUP_SHARE)
    measured = seconds - warmup
    side_run = ShareRun(SIDES[key], warmup)
    with view_for(console, measured, before) as view:
        view.show(side_run)
        run_side(side_run, measured, on_tick=view.show, tick_seconds=TICK_SECONDS)
    console.print(
        f"[bold]{side_run.side.label}[/]  [dim]{measured:.0f} s measured, after {warmup} s of warm-up[/]"
    )
    console.print(pipelines_table(side_run, side_run.ended_at or 0.0, before))
    console.print()
    if side_run.wrong_counts:
        raise PenstockError(
            f"counts must be exact, but {'; '.join(side_run.wrong_counts[:3])}: this is a defect"
        )
    return side_run


def _write(
    console: Console, runs: list[ShareRun], args: argparse.Namespace, machine: dict[str, object]
) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    picture = save_picture(runs, args.out / "demo.png")
    report = Report(
        runs,
        args.seconds - runs[0].warmup_seconds,
        picture.read_bytes(),
        machine,
        f"penstock demo --seconds {args.seconds:g}",
        time.strftime("%Y-%m-%d %H:%M:%S %z"),
    )
    page = args.out / "report.html"
    page.write_text(report.html(), encoding="utf-8")
    console.print(f"picture  {picture.resolve()}", soft_wrap=True)
    console.print(f"report   {page.resolve()}", soft_wrap=True)
