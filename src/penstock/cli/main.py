"""Finds the command that was asked for, and runs it.

A command is a module with `add_arguments(parser)` and `run(args) -> int`. It is imported only when it is
chosen: most of them import Spark, and `penstock --help` should not wait for that.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from penstock import __version__
from penstock.errors import PenstockError

REFUSED = 2
INTERRUPTED = 130


@dataclass(frozen=True)
class Command:
    """A line of the table below; with `passes_on` its arguments are for another program and not read here."""

    name: str
    module: str
    help: str
    passes_on: bool = False


COMMANDS = (
    Command(
        "demo", "penstock.cli.demo", "the same pipelines on plain Spark and under Penstock, in two minutes"
    ),
    Command("run", "penstock.cli.run", "run the pipelines of a Python file"),
    Command("ingest", "penstock.cli.ingest", "take rows over HTTP into a spool, for pipelines to read later"),
    Command("graph", "penstock.cli.graph", "show the stages and queues of the pipelines of a Python file"),
    Command("explain", "penstock.cli.explain", "tell why stages were granted their turns or had to wait"),
    Command("top", "penstock.cli.top", "watch a running engine in the terminal"),
    Command("report", "penstock.cli.report", "write one HTML file about a run, to attach to a ticket"),
    Command("calibrate", "penstock.cli.calibrate", "find latency targets: twice the p95 at half load"),
    Command("profile", "penstock.cli.profile", "measure what turns of different sizes cost, by stage"),
    Command("plan", "penstock.cli.plan", "tell what slots would lead to, from measured costs"),
    Command("simulate", "penstock.cli.simulate", "what other slots, rates and policies would lead to"),
    Command("dead-letters", "penstock.cli.dead_letters", "show the bad and late rows of a pipeline"),
    Command("resume", "penstock.cli.resume", "go on with a pipeline that an error had stopped"),
    Command("install", "penstock.cli.install", "fetch the jars of an optional connector, once: kafka"),
    Command("cluster", "penstock.cli.cluster", "start and end a Spark cluster on this machine"),
    Command("bench", "penstock.cli.bench", "measure, side by side with plain Spark"),
    Command("test", "penstock.cli.test", "check style and types and run all tests", passes_on=True),
)


class CommandModule(Protocol):
    """What the module of a command offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: the command's own, 2 where Penstock refuses, 130 after Ctrl-C."""
    asked = _parser().parse_args(argv)
    if asked.command is None:
        _parser().print_help()
        return 0
    command = next(known for known in COMMANDS if known.name == asked.command)
    try:
        return _run(command, asked.arguments)
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED


def module_of(command: Command) -> CommandModule:
    """The module of a command, imported now."""
    return cast(CommandModule, import_module(command.module))


def parser_of(command: Command) -> argparse.ArgumentParser:
    """What reads the arguments of a command."""
    parser = argparse.ArgumentParser(prog=f"penstock {command.name}", description=command.help)
    module_of(command).add_arguments(parser)
    return parser


def _run(command: Command, arguments: list[str]) -> int:
    module, parser = module_of(command), parser_of(command)
    if command.passes_on and arguments[:1] not in (["-h"], ["--help"]):
        arguments = ["--", *arguments]
    return module.run(parser.parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    width = max(len(command.name) for command in COMMANDS)
    table = "\n".join(f"  {command.name:<{width}}  {command.help}" for command in COMMANDS)
    parser = argparse.ArgumentParser(
        prog="penstock",
        usage="penstock [-h] [--version] command ...",
        description="Many streaming pipelines with latency targets on one Spark application.",
        epilog=f"commands:\n{table}\n\n`penstock command --help` tells more about one of them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    names = [command.name for command in COMMANDS]
    parser.add_argument("command", nargs="?", choices=names, metavar="command", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser
