"""`penstock report`: one HTML file about a run, to attach to a ticket."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from penstock.cli.state_directory import DEFAULT, StateDirectory
from penstock.dashboard.run_record import RunRecord
from penstock.errors import PenstockError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        type=Path,
        nargs="?",
        metavar="RUN",
        help=f"state directory (default: ./{DEFAULT})",
    )
    parser.add_argument(
        "--state", type=Path, default=DEFAULT, metavar="DIR", help="the same, as other commands have it"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("penstock-report.html"),
        metavar="FILE",
        help="default: ./%(default)s",
    )


def run(args: argparse.Namespace) -> int:
    state = StateDirectory(args.run or args.state)
    record = record_of(state)
    if not record.minutes and not record.spans:
        raise PenstockError(
            f"no figures are kept in {state.path}: an engine writes them there as it runs, and when it ends"
        )
    from penstock.dashboard.run_report import page

    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(record, time.strftime("%Y-%m-%d %H:%M:%S %z")), encoding="utf-8")
    print(f"report   {args.out.resolve()}")
    return 0


def record_of(state: StateDirectory) -> RunRecord:
    """What the directory keeps, whether an engine runs on it or not."""
    failures = {name: state.failure(name) for name in state.pipelines}
    return RunRecord(
        state.path.resolve().name,
        tuple(state.minutes()),
        tuple(state.sinks()),
        tuple(state.turns()),
        tuple(state.changes()),
        {name: str(failure["reason"]) for name, failure in failures.items() if failure is not None},
    )
