"""`penstock cluster`: a Spark standalone cluster of real processes on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from penstock.spark.cluster.standalone import StandaloneCluster, WorkerStatus

DEFAULT = Path("penstock-cluster")
COLUMNS = ("worker", "region", "state", "cores", "in use", "memory", "executors", "process")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, told in (
        ("up", "start a master and workers, and wait until all are registered"),
        ("status", "show the master's address and the workers"),
        ("add", "start one more worker"),
        ("remove", "let a worker end its tasks, then end it"),
        ("down", "end all that was started"),
    ):
        action = actions.add_parser(name, help=told, description=told)
        action.add_argument(
            "--dir",
            type=Path,
            default=DEFAULT,
            metavar="DIR",
            help="where its records, logs and scratch files lie (default: ./%(default)s)",
        )
        if name in ("up", "add"):
            _add_size(action)
    actions.choices["up"].add_argument(
        "--workers", type=_positive, default=2, metavar="N", help="default: %(default)s"
    )
    actions.choices["add"].add_argument(
        "--name", default="", help="default: worker-N, the first that is free"
    )
    actions.choices["remove"].add_argument("name", metavar="NAME", help="the worker, as status shows it")


def _add_size(action: argparse.ArgumentParser) -> None:
    action.add_argument("--cores", type=_positive, default=1, help="of each worker (default: %(default)s)")
    action.add_argument("--region", default="default", help="a label of the workers (default: %(default)s)")
    action.add_argument("--memory", default="1g", help="of each worker, for executors (default: %(default)s)")


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {text}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from penstock.spark.cluster.standalone import StandaloneCluster

    actions: dict[str, Callable[[StandaloneCluster, argparse.Namespace], None]] = {
        "up": _up,
        "status": _status,
        "add": _add,
        "remove": _remove,
        "down": _down,
    }
    actions[args.action](StandaloneCluster(args.dir), args)
    return 0


def _up(cluster: StandaloneCluster, args: argparse.Namespace) -> None:
    from penstock.spark.cluster.standalone import WorkerSize

    cluster.up([WorkerSize(args.cores, args.region, args.memory)] * args.workers)
    _status(cluster, args)


def _status(cluster: StandaloneCluster, args: argparse.Namespace) -> None:
    print(f"master  {cluster.url}\npage    {cluster.page}")
    Console().print(worker_table(cluster.status()))


def _add(cluster: StandaloneCluster, args: argparse.Namespace) -> None:
    from penstock.spark.cluster.standalone import WorkerSize

    name = cluster.add(WorkerSize(args.cores, args.region, args.memory), args.name)
    cluster.wait_until_up(name)
    print(f"{name} is up")


def _remove(cluster: StandaloneCluster, args: argparse.Namespace) -> None:
    drained = cluster.remove(args.name)
    print(f"{args.name} has left" + ("" if drained else ": tasks that did not end in time run elsewhere"))


def _down(cluster: StandaloneCluster, args: argparse.Namespace) -> None:
    ended = cluster.down()
    print(f"ended: {', '.join(ended)}" if ended else f"no cluster runs in {cluster.folder}")


def worker_table(workers: Sequence[WorkerStatus]) -> Table:
    """One line for each worker."""
    table = Table(box=box.SIMPLE, padding=(0, 1))
    for column in COLUMNS[:3]:
        table.add_column(column)
    for column in COLUMNS[3:]:
        table.add_column(column, justify="right")
    for each in workers:
        figures = (each.cores, each.used, each.memory, each.executors, each.pid)
        table.add_row(each.name, each.region, each.state, *map(str, figures))
    return table
