"""`penstock explain`: decisions with their reasons, what held stages back, how replicas and nodes changed."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.cli.state_directory import DEFAULT, StateDirectory
from penstock.errors import PenstockError
from penstock.measure.held_back import what_held_back
from penstock.measure.minutes import StageMinute, minute_of
from penstock.plan.elastic.story import overview, story
from penstock.scheduling.decisions import Decision, Grant, count, render

REASONS_SHOWN = 3
PLANS_SHOWN = 5
RECONFIGURATIONS_SHOWN = 5
SLOT_LINES_SHOWN = 10


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
    parser.add_argument(
        "--minute",
        type=_clock,
        metavar="HH:MM",
        help="what held the stages back in that minute, in UTC (default, for a STAGE: in the last one kept)",
    )
    parser.add_argument(
        "--reconfiguration",
        type=_positive,
        metavar="ID",
        help="only what the managers of replicas and nodes had to do with that reconfiguration",
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {text}")
    return int(text)


def _clock(text: str) -> str:
    if not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", text):
        raise argparse.ArgumentTypeError(f"must be a time of day from 00:00 to 23:59, got {text}")
    return text


def run(args: argparse.Namespace) -> int:
    state = StateDirectory(args.state)
    if args.reconfiguration is not None:
        print(
            story((each for look in state.elastic_looks() for each in look.decisions), args.reconfiguration)
        )
        return 0
    stages = _stages_meant(args.stage, state)
    minute = _minute(args.minute, state, stages) if args.stage or args.minute else ()
    last: deque[Decision] = deque(maxlen=args.n)
    account = Account()
    for decision in state.decisions():
        if (stages is None or decision.stage in stages) and _within(decision, minute if args.minute else ()):
            last.append(decision)
            account.add(decision)
    if not last and not minute:
        raise PenstockError(
            f"no decision is kept in {state.path}: an engine writes them there as it runs, every second"
        )
    if last:
        print(render(last))
        print()
        account.show()
    _show_plans(state, stages, minute if args.minute else ())
    _show_reconfigurations(state)
    _show_slots(state, stages, minute if args.minute else ())
    _show_causes(minute, stages)
    return 0


def _stages_meant(wanted: str | None, state: StateDirectory) -> set[str] | None:
    """The full names of the stages asked for; None for all decisions."""
    if wanted is None:
        return None
    known = {decision.stage for decision in state.decisions() if decision.stage}
    known |= {each.stage for each in state.minutes()}
    meant = {name for name in known if wanted in (name, *name.split(".", 1))}
    if not meant:
        listed = ", ".join(sorted(known)) or "none"
        raise PenstockError(f"no stage {wanted!r} was decided on in {state.path}, of: {listed}")
    return meant


def _minute(clock: str | None, state: StateDirectory, stages: set[str] | None) -> tuple[StageMinute, ...]:
    """All stages in the last minute kept of any of `stages`, with a clock in the last that it showed so."""
    kept = tuple(state.minutes())
    meant = [each for each in kept if stages is None or each.stage in stages]
    begins = [each.begin for each in meant if clock in (None, each.clock)]
    if begins:
        # Of a stage that was started twice within the minute, the later figures.
        return tuple({each.stage: each for each in kept if each.begin == max(begins)}.values())
    if clock is None:
        return ()
    there = f"from {meant[0].clock} to {meant[-1].clock}" if meant else "none"
    raise PenstockError(f"no figures of {clock} UTC are kept in {state.path}, of: {there}")


def _within(decision: Decision, minute: tuple[StageMinute, ...]) -> bool:
    return not minute or minute_of(decision.at) == minute[0].begin


def _show_plans(state: StateDirectory, stages: set[str] | None, minute: tuple[StageMinute, ...]) -> None:
    """The last plans of batch sizes, with their reasons."""
    plans = [each for each in state.plans() if not minute or minute_of(each.at) == minute[0].begin]
    if plans:
        print()
    for each in plans[-PLANS_SHOWN:]:
        print(each.line(stages))


def _show_reconfigurations(state: StateDirectory) -> None:
    """The last changes of replicas and nodes; `--reconfiguration` tells more about one."""
    lines = overview(
        (each for look in state.elastic_looks() for each in look.decisions), RECONFIGURATIONS_SHOWN
    )
    if lines:
        print("", *lines, sep="\n")


def _show_slots(state: StateDirectory, stages: set[str] | None, minute: tuple[StageMinute, ...]) -> None:
    """The last changes of slots with their reasons, and why slots were left as they are at last."""
    kept = [each for each in state.slots() if not minute or minute_of(each.at) == minute[0].begin]
    meant = [each for each in kept if each.line(stages)]
    changes = [each for each in meant if each.changes]
    if meant:
        print()
    for each in changes[-SLOT_LINES_SHOWN:]:
        print(each.line(stages))
    if meant and not meant[-1].changes:
        print(meant[-1].line(stages))


def _show_causes(minute: tuple[StageMinute, ...], stages: set[str] | None) -> None:
    """A sentence for each stage on what held it back."""
    for each in sorted(minute, key=lambda each: each.stage):
        if stages is None or each.stage in stages:
            others = [other for other in minute if other.stage != each.stage]
            print(f"\n{each.clock} UTC: {what_held_back(each, others).sentence}.")


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
