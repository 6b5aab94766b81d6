"""`penstock resume`: lets a pipeline go on that an error had stopped."""

from __future__ import annotations

import argparse
from pathlib import Path

from penstock.cli.state_directory import DEFAULT, StateDirectory
from penstock.errors import PenstockError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pipeline", metavar="PIPELINE", help="the one that failed")
    parser.add_argument(
        "--state", type=Path, default=DEFAULT, metavar="DIR", help="the engine's (default: ./%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    state = StateDirectory(args.state)
    folder = state.folder(args.pipeline)
    failure = state.failure(args.pipeline)
    if failure is None:
        raise PenstockError(
            f"pipeline {args.pipeline!r} in {state.path} has not failed: there is nothing to resume"
        )
    print(f"pipeline {args.pipeline!r} had stopped: {failure['reason']}")
    process = state.engine_process
    if process is not None:
        (folder / "resume").touch()
        print(f"the engine that runs (process {process}) goes on with it within two seconds")
        return 0
    (folder / "failed.json").unlink(missing_ok=True)
    (folder / "resume").unlink(missing_ok=True)
    print("no engine runs on this state directory: the next one goes on with it, no row is lost")
    return 0
