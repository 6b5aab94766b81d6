"""`penstock explain`: the scheduler's decisions with their reasons, from a state directory."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.cli.state_directory import DEFAULT, StateDirectory
from penstock.errors import PenstockError
from penstock.scheduling.decisions import Decision, Grant, count, render

REASONS_SHOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "stage",
        nargs="?",
        metavar="STAGE",
        help="only this stage (pipeline.operator, or the operator alone), or all of one pipeline",
    )
    parser.add_argument(
        "--state", type=Path, default=DEFAULT, metavar="DIR", help="the engine's (default: ./%(default)s)"
    )
    parser.add_argument("-n", type=_positive, default=50, metavar="N", help="show the last N (default: 50)")


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {text}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    state = StateDirectory(args.state)
    stages = _stages_meant(args.stage, state)
    last: deque[Decision] = deque(maxlen=args.n)
    account = Account()
    for decision in state.decisions():
        if stages is None or decision.stage in stages:
            last.append(decision)
            account.add(decision)
    if not last:
        raise PenstockError(
            f"no decision is kept in {state.path}: an engine writes them there as it runs, every second"
        )
    print(render(last))
    print()
    account.show()
    return 0


def _stages_meant(wanted: str | None, state: StateDirectory) -> set[str] | None:
    """The full names of the stages asked for; None for all decisions."""
    if wanted is None:
        return None
    known = {decision.stage for decision in state.decisions() if decision.stage}
    meant = {name for name in known if wanted in (name, *name.split(".", 1))}
    if not meant:
        listed = ", ".join(sorted(known)) or "none"
        raise PenstockError(f"no stage {wanted!r} was decided on in {state.path}, of: {listed}")
    return meant


@dataclass
class StageAccount:
    """What was decided on one stage."""

    grants: int = 0
    rows: int = 0
    waited_seconds: float = 0.0
    longest_seconds: float = 0.0
    holds: Counter[str] = field(default_factory=Counter)


@dataclass
class Account:
    """Sums over decisions, by stage."""

    stages: dict[str, StageAccount] = field(default_factory=dict)
    idle: int = 0

    def add(self, decision: Decision) -> None:
        if not decision.stage:
            self.idle += 1
            return
        stage = self.stages.setdefault(decision.stage, StageAccount())
        if isinstance(decision, Grant):
            stage.grants += 1
            stage.rows += decision.rows
            stage.waited_seconds += decision.waited_seconds
            stage.longest_seconds = max(stage.longest_seconds, decision.waited_seconds)
        else:
            stage.holds[decision.reason] += 1

    def show(self) -> None:
        """Prints a table of the stages."""
        from rich.console import Console
        from rich.table import Table

        table = Table(title="all decisions kept", title_justify="left")
        table.add_column("stage", overflow="fold")
        for column in ("turns", "rows", "mean wait s", "longest s"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("held most often because", overflow="fold")
        for name, stage in sorted(self.stages.items()):
            mean = stage.waited_seconds / stage.grants if stage.grants else 0.0
            table.add_row(
                name,
                f"{stage.grants:,}",
                f"{stage.rows:,}",
                f"{mean:.3f}",
                f"{stage.longest_seconds:.3f}",
                _commonest(stage.holds.most_common(REASONS_SHOWN)),
            )
        console = Console(width=None if sys.stdout.isatty() else 110)
        console.print(table)
        if self.idle:
            console.print(f"{count(self.idle, 'time')} no stage waited", highlight=False)


def _commonest(reasons: Iterable[tuple[str, int]]) -> str:
    return "\n".join(f"{reason} ({times:,})" for reason, times in reasons)
