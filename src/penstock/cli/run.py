"""`penstock run`: the pipelines of a Python file under one engine, with a live table of their stages."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.logging import RichHandler

from penstock.cli.interrupts import ended_by_signals
from penstock.cli.pipeline_file import load_pipelines
from penstock.cli.stage_table import run_tables, summary_line
from penstock.cli.state_directory import DEFAULT
from penstock.dashboard import PORT, Dashboard, Watch
from penstock.errors import PenstockError
from penstock.pipeline.pipeline import Pipeline
from penstock.scheduling.catalog import POLICIES
from penstock.scheduling.consumption import parse_consumption

if TYPE_CHECKING:
    from penstock.spark.engine import Engine
    from penstock.spark.running import RunningPipeline

Refresh = Callable[[], None]
REFRESH_SECONDS = 0.5
LINE_SECONDS = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.py", help="declares the pipelines")
    parser.add_argument(
        "--state",
        type=Path,
        default=DEFAULT,
        metavar="DIR",
        help="where queues and checkpoints lie; a later run goes on from there (default: ./%(default)s)",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="run on a cluster: spark://HOST:PORT, yarn or k8s://URL (default: in this process)",
    )
    parser.add_argument(
        "--region", metavar="NAME", help="on workers of this region alone (see penstock cluster)"
    )
    parser.add_argument("--slots", type=_positive, default=None, help="turns at a time (default: the cores)")
    parser.add_argument("--policy", choices=sorted(POLICIES), default="llf", help="default: %(default)s")
    parser.add_argument(
        "--consumption",
        default=None,
        metavar="RULE",
        help="rows a turn takes: all, half, at-most-N or planned (default: all, with batchit planned)",
    )
    parser.add_argument(
        "--dashboard",
        type=_port,
        nargs="?",
        const=PORT,
        metavar="PORT",
        help="serve a live page and metrics on this machine (default port: %(const)s; 0: any that is free)",
    )
    parser.add_argument(
        "--dashboard-host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="serve them on another address than loopback; whoever looks needs the token that is shown",
    )
    parser.add_argument(
        "--until-idle", action="store_true", help="end when every replay has ended and no row waits"
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {text}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, got {text}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """0 at the end or after Ctrl-C, 1 if a pipeline has failed."""
    pipelines = load_pipelines(args.file)
    for pipeline in pipelines:
        pipeline.check()
    if args.consumption is not None:
        parse_consumption(args.consumption)
    console = Console()
    logging.basicConfig(handlers=[RichHandler(console=console, show_path=False)], format="%(message)s")
    console.print(f"starting Spark; state in {args.state}", highlight=False)
    # Not before here: mistakes in the file are told without waiting for Spark.
    from penstock.spark.engine import Engine

    settings = {"slots": args.slots, "policy": args.policy, "consumption": args.consumption}
    with (
        Engine(state=args.state, master=args.master, region=args.region, **settings) as engine,
        watching(engine, args) as page,
    ):
        if page is not None:
            console.print(f"live page: {page.url}", highlight=False, soft_wrap=True)
        return _watch(engine, pipelines, console, args.until_idle)


@contextmanager
def watching(engine: Engine, args: argparse.Namespace) -> Iterator[Dashboard | None]:
    """Alerts go to the log in any case; the page is served where it was asked for."""
    with Watch(engine) as watch:
        if args.dashboard is None:
            yield None
            return
        with Dashboard(watch, args.dashboard, args.dashboard_host) as page:
            yield page


def _watch(engine: Engine, pipelines: list[Pipeline], console: Console, until_idle: bool) -> int:
    with ended_by_signals():
        running = [engine.submit(pipeline) for pipeline in pipelines]
        try:
            with _display(engine, running, console) as refresh:
                while not (until_idle and _all_at_rest(running)):
                    refresh()
                    time.sleep(REFRESH_SECONDS)
        except KeyboardInterrupt:
            console.print("stopping: turns that run end first")
        console.print(run_tables(engine, running))
    return _verdict(engine, running, console)


@contextmanager
def _display(engine: Engine, running: list[RunningPipeline], console: Console) -> Iterator[Refresh]:
    """A live table in a terminal, else a line now and then."""
    if not console.is_terminal:
        yield _Lines(engine, running, console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda: live.update(run_tables(engine, running), refresh=True)


class _Lines:
    """Prints a line of progress, at most one in LINE_SECONDS."""

    def __init__(self, engine: Engine, running: list[RunningPipeline], console: Console):
        self._engine = engine
        self._running = running
        self._console = console
        self._due = 0.0

    def __call__(self) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + LINE_SECONDS
            self._console.print(summary_line(self._engine, self._running), highlight=False)


def _all_at_rest(running: list[RunningPipeline]) -> bool:
    return all(each.state == "failed" or each.idle for each in running)


def _verdict(engine: Engine, running: list[RunningPipeline], console: Console) -> int:
    failed = [each for each in running if each.state == "failed"]
    for each in failed:
        reason = each.error or PenstockError("no reason is known")
        told = f"pipeline {each.name!r} failed: {reason}"
        console.print(told, highlight=False, markup=False, soft_wrap=True)
        console.print(
            f"mend the cause, then: penstock resume {each.name} --state {engine.state}",
            highlight=False,
            soft_wrap=True,
        )
    return 1 if failed else 0
