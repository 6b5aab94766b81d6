"""`penstock bench scaling`: how many slots, from models; their controller; and changes while stages run."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from penstock.bench.result import BenchResult, BenchSettings
from penstock.bench.scaling.allocations import tell_allocations, try_case
from penstock.bench.scaling.bursty import bursty
from penstock.bench.scaling.cases import CASES, Case
from penstock.bench.scaling.changes import changes
from penstock.bench.scaling.control import changes_of_rate, convergence
from penstock.bench.scaling.kept_cases import KeptCases
from penstock.bench.scaling.planning import planning
from penstock.bench.scaling.simulator import simulator, speed
from penstock.bench.scaling.stand import POOL_SLOTS, Stand, Times
from penstock.operators.emulate import EMULATED

FULL = Times(warmup=6.0, measured=26.0, heat=40.0, minute=10.0, again=2)
QUICK = Times(warmup=3.0, measured=7.0, heat=6.0, minute=2.0)
QUICK_CASE = Case("vld", 3.0, 6, "uniform")
QUICK_NEIGHBOURS = 2
QUICK_CHANGES = 4
QUICK_POOL_SECONDS = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", action="append", choices=tuple(PARTS), help="only these (default: all)")
    names = [each.name for each in CASES]
    parser.add_argument(
        "--case",
        action="append",
        choices=names,
        metavar="CASE",
        help=f"of part allocations only these, of: {', '.join(names)}",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="of part allocations keep cases there; those that are there are told, and not run again",
    )
    parser.add_argument("--measured", type=float, metavar="S", help="seconds measured of each allocation")
    parser.add_argument("--minute", type=float, metavar="S", help="what a minute of the paper takes here")
    parser.add_argument("--repeats", type=int, metavar="N", help="runs of each allocation; the median counts")


def run(settings: BenchSettings) -> BenchResult:
    """The parts one after the other, all emulated ones in one process."""
    result = BenchResult("scaling")
    usual = QUICK if settings.quick else FULL
    times = Times(
        usual.warmup,
        settings.option("measured") or usual.measured,
        usual.heat,
        settings.option("minute") or usual.minute,
        settings.option("repeats") or usual.repeats,
        usual.again,
    )
    with (
        tempfile.TemporaryDirectory(prefix="penstock-scaling-", ignore_cleanup_errors=True) as scratch,
        closing(Stand(Path(scratch), times, settings.say)) as stand,
    ):
        if settings.quick:
            planning(result)
            speed(result, runs=1, seconds=QUICK_POOL_SECONDS)
            judged = [try_case(stand, QUICK_CASE, QUICK_NEIGHBOURS, plans=2)]
            tell_allocations(result, judged)
            changes(stand, result, QUICK_CHANGES)
        else:
            for name in settings.option("part") or PARTS:
                settings.say(name)
                PARTS[name](stand, result, settings)
        result.setup |= {
            "times": vars(times),
            "emulated": f"{EMULATED}, {POOL_SLOTS} slots; a minute of the paper is {times.minute:g} s, "
            "service times are as declared",
            "sojourn": "from when an input was due until the last row of it was at the sink",
        }
    return result


def _allocations(stand: Stand, result: BenchResult, settings: BenchSettings) -> None:
    wanted, kept = settings.option("case"), settings.option("keep")
    cases = [each for each in CASES if not wanted or each.name in wanted]
    if kept is None:
        tell_allocations(result, [try_case(stand, case) for case in cases])
        return
    known = KeptCases(kept, stand.times)
    tell_allocations(result, [known.tried(case, partial(try_case, stand, case)) for case in cases])


Part = Callable[[Stand, BenchResult, BenchSettings], None]
PARTS: Mapping[str, Part] = {
    "planning": lambda stand, result, settings: planning(result),
    "allocations": _allocations,
    "bursty": lambda stand, result, settings: bursty(stand, result),
    "control": lambda stand, result, settings: changes_of_rate(stand, result),
    "convergence": lambda stand, result, settings: convergence(stand, result),
    "changes": lambda stand, result, settings: changes(stand, result),
    "simulator": lambda stand, result, settings: simulator(result, settings.say),
}
