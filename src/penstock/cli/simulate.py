"""`penstock simulate FILE.py`: what other slots, rates and policies would lead to, without Spark.

The engine's own scheduler runs the pipelines on simulated slots, with turns as long as their profiles say.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from penstock.cli.pipeline_file import load_pipelines
from penstock.cli.simulate_table import Case, draw, table, warnings
from penstock.cli.state_directory import DEFAULT, StateDirectory
from penstock.errors import PenstockError
from penstock.measure.profiles import Profiler
from penstock.plan.slot_errors import SlotError
from penstock.scheduling.catalog import policy_named
from penstock.scheduling.consumption import Planned, parse_consumption
from penstock.scheduling.policies import BatchIt
from penstock.simulate.controls import BatchPlanning
from penstock.simulate.outcome import Outcome
from penstock.simulate.pipelines import MissingCosts, plant_of
from penstock.simulate.planned_slots import with_planned_slots
from penstock.simulate.plant import Plant
from penstock.simulate.settings import SimulationSettings
from penstock.simulate.simulation import Simulation

WARMUP_SHARE, MOST_WARMUP_SECONDS = 0.1, 300.0
GC_THRESHOLD = 200_000
WIDTH = 120
"""Of the table where no terminal has one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.py", help="declares the pipelines")
    parser.add_argument(
        "--state",
        type=Path,
        default=DEFAULT,
        metavar="DIR",
        help="where costs were kept by `penstock profile` or a run (default: ./%(default)s)",
    )
    parser.add_argument(
        "--slots", type=_numbers, default=(2,), metavar="N,N,...", help="sizes of the pool (default: 2)"
    )
    parser.add_argument(
        "--slots-per-stage",
        choices=("declared", "planned"),
        default="declared",
        help="slots of a turn: as the stages declare, or as `penstock plan` gives for each size of the pool "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--rate",
        default="1x",
        metavar="RATE",
        help="a factor on the sources' own rates, such as 10x, or rows/s in all (default: %(default)s)",
    )
    parser.add_argument("--policy", default="llf", metavar="NAME,...", help="policies (default: %(default)s)")
    parser.add_argument(
        "--consumption",
        default=None,
        metavar="RULE",
        help="rows a turn takes: all, half, at-most-N or planned (default: all, with batchit planned)",
    )
    parser.add_argument("--hours", type=float, default=None, help="simulated time")
    parser.add_argument("--minutes", type=float, default=None, help="simulated time (default: 10 minutes)")
    parser.add_argument("--seed", type=_seeds, default=(0,), metavar="N,N,...", help="of chance (default: 0)")
    parser.add_argument(
        "--scv",
        type=float,
        default=0.05,
        help="how much turns vary: variance over squared mean (default: %(default)s)",
    )
    parser.add_argument(
        "--picture", type=Path, default=Path("simulate.png"), help="where it goes (default: %(default)s)"
    )


def _numbers(text: str) -> tuple[int, ...]:
    numbers = _seeds(text)
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"must be numbers of 1 or more with commas between, got {text!r}")
    return numbers


def _seeds(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"must be whole numbers with commas between, got {text!r}")
    return tuple(dict.fromkeys(int(part) for part in parts))


def run(args: argparse.Namespace) -> int:
    for policy in args.policy.split(","):
        policy_named(policy)
    if args.consumption is not None:
        parse_consumption(args.consumption)
    seconds = _seconds(args.hours, args.minutes)
    plant = _plant(args)
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    with _seldom_collected():
        cases = list(_cases(plant, args, seconds, console))
    console.print(table(cases, _title(plant, seconds, args.seed)))
    for line in warnings(cases):
        console.print(line, highlight=False)
    draw(cases, args.picture)
    console.print(f"picture in {args.picture}", highlight=False)
    return 0


def _cases(plant: Plant, args: argparse.Namespace, seconds: float, console: Console) -> Iterator[Case]:
    for policy in args.policy.split(","):
        for slots in args.slots:
            console.print(f"{policy} on {slots} slots", highlight=False)
            placed = _planned(plant, slots, console) if args.slots_per_stage == "planned" else plant
            outcomes = [
                simulated(placed, policy, slots, args.consumption, seed, seconds) for seed in args.seed
            ]
            yield Case(policy, slots, tuple(outcomes))


def _planned(plant: Plant, slots: int, console: Console) -> Plant:
    try:
        placed = with_planned_slots(plant, slots)
    except SlotError as error:
        console.print(f"  as declared: {error}", highlight=False)
        return plant
    told = ", ".join(f"{stage.name} {stage.slots}" for stage in placed.stages)
    console.print(f"  planned: {told}", highlight=False)
    return placed


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Simulations leave no circles of objects behind: looking for such takes a quarter of their time."""
    before = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _seconds(hours: float | None, minutes: float | None) -> float:
    seconds = (
        600.0 if hours is None and minutes is None else 3600.0 * (hours or 0.0) + 60.0 * (minutes or 0.0)
    )
    if not seconds > 0.0:
        raise PenstockError(f"simulated time must be positive, got {seconds:g} s: nothing would happen")
    return seconds


def _plant(args: argparse.Namespace) -> Plant:
    factor, rate = parse_rate(args.rate)
    kept = StateDirectory(args.state).profiles() if args.state.is_dir() else {}
    profilers = {name: Profiler.from_json(stored) for name, stored in kept.items()}
    costs = {name: profiler.profile for name, profiler in profilers.items()}
    try:
        plant = plant_of(load_pipelines(args.file), costs.get, scv=args.scv, rows_per_second=rate)
    except MissingCosts as error:
        raise PenstockError(
            f"stages must have known costs to be simulated, got none for {', '.join(error.stages[:5])} in "
            f"{args.state}: run `penstock profile {args.file} --state {args.state}` first"
        ) from error
    return plant if factor == 1.0 else plant.scaled(factor)


def parse_rate(text: str) -> tuple[float, float | None]:
    """(factor, rows per second): `10x` is ten times the sources' own rates, `5000` so many rows/s in all.

    >>> parse_rate("10x"), parse_rate("5000")
    ((10.0, None), (1.0, 5000.0))
    """
    try:
        number = float(text.removesuffix("x"))
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise PenstockError(
            f"a rate must be a factor such as '10x' or rows/s such as '5000', got {text!r}: no row would come"
        )
    return (number, None) if text.endswith("x") else (1.0, number)


def simulated(
    plant: Plant, policy: str, slots: int, consumption: str | None, seed: int, seconds: float
) -> Outcome:
    """One run; its first tenth, at most five minutes, is warm-up."""
    chosen = policy_named(policy)
    by_plan = isinstance(chosen, BatchIt)
    consumes = parse_consumption(consumption or ("planned" if by_plan else "all"))
    controls = (BatchPlanning(),) if by_plan or isinstance(consumes, Planned) else ()
    settings = SimulationSettings.on_slots(chosen, slots, consumption=consumes, seed=seed, controls=controls)
    return Simulation(plant, settings).run(seconds, min(WARMUP_SHARE * seconds, MOST_WARMUP_SECONDS))


def _title(plant: Plant, seconds: float, seeds: Sequence[int]) -> str:
    rate = sum(inflow.arrivals.rows_per_second for inflow in plant.inflows)
    spread = "" if len(seeds) == 1 else f"; median of {len(seeds)} seeds, ± half their range"
    return f"{len(plant.stages)} stages, {rate:,.0f} rows/s, {seconds / 3600:.3g} h simulated{spread}"
