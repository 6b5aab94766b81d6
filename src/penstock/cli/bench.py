"""`penstock bench NAME`: a measurement, as a table, a JSON file and plots; without a name, the list."""

import argparse
import shlex
from pathlib import Path

from penstock.bench.catalog import BENCHES, add_arguments_of, bench_named
from penstock.bench.machine import machine_facts
from penstock.bench.report import report
from penstock.bench.result import BenchSettings
from penstock.cli.interrupts import ended_by_signals

FOLDER = Path("penstock-bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "penstock bench [NAME] [--json FILE] [--quick]"
    parser.epilog = f"benches:\n{_listing()}\n\n`penstock bench NAME --help` tells more about one of them."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", metavar="NAME", help="the bench; without it, the list of them")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.name is None:
        print(_listing())
        return 0
    module = bench_named(args.name)
    asked = parser_of(args.name).parse_args(args.arguments)
    options = {key: value for key, value in vars(asked).items() if key not in ("json", "quick")}
    settings = BenchSettings(asked.quick, asked.json.absolute(), argparse.Namespace(**options))
    machine = machine_facts()
    with ended_by_signals():
        result = module.run(settings)
    result.setup = {**settings.described(), **result.setup}
    command = shlex.join(["penstock", "bench", args.name, *args.arguments])
    report(result, asked.json, machine=machine, command=command)
    return 0


def parser_of(name: str) -> argparse.ArgumentParser:
    """What reads the arguments of one bench."""
    module = bench_named(name)
    parser = argparse.ArgumentParser(prog=f"penstock bench {name}", description=BENCHES[name].help)
    parser.add_argument(
        "--json",
        type=Path,
        default=FOLDER / f"{name}.json",
        metavar="FILE",
        help="where the figures go, with the plots beside it (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help="under two minutes: shorter, and less exact")
    add_arguments_of(module, parser)
    return parser


def _listing() -> str:
    width = max(map(len, BENCHES))
    return "\n".join(f"  {name:<{width}}  {bench.help}" for name, bench in BENCHES.items())
