"""`penstock simulate FILE.py`: what other slots, rates and policies would lead to, without Spark.

The engine's own scheduler runs the pipelines on simulated slots, with turns as long as their profiles say.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from penstock.cli.pipeline_file import load_pipelines
from penstock.cli.state_directory import DEFAULT, StateDirectory
from penstock.errors import PenstockError
from penstock.measure.profiles import Profiler
from penstock.scheduling.catalog import policy_named
from penstock.scheduling.consumption import Planned, parse_consumption
from penstock.scheduling.policies import BatchIt
from penstock.simulate.controls import BatchPlanning
from penstock.simulate.outcome import Outcome
from penstock.simulate.pipelines import MissingCosts, plant_of
from penstock.simulate.plant import Plant
from penstock.simulate.simulation import Simulation, SimulationSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WARMUP_SHARE, MOST_WARMUP_SECONDS = 0.1, 300.0
WIDTH = 120
"""Of the table where no terminal has one."""
KEEPS_UP_SHARE = 0.03
"""Of the simulated time, how much input may wait at the end."""
COLUMNS = (
    "\npolicy",
    "\nslots",
    "\nsink",
    "p50\ns",
    "p99\ns",
    "target\ns",
    "in time\n%",
    "busy\n%",
    "turns\n/s",
    "backlog\ns",
)
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")


@dataclass(frozen=True)
class Case:
    """One policy on one pool, and what each seed led to."""

    policy: str
    slots: int
    outcomes: tuple[Outcome, ...]

    @property
    def sinks(self) -> tuple[str, ...]:
        return tuple(self.outcomes[0].sinks)

    def quantiles(self, sink: str, q: float) -> list[float]:
        """Of each seed."""
        return [outcome.sinks[sink].latency.quantile(q) for outcome in self.outcomes]


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
    cases = []
    for policy in args.policy.split(","):
        for slots in args.slots:
            console.print(f"{policy} on {slots} slots", highlight=False)
            outcomes = [
                simulated(plant, policy, slots, args.consumption, seed, seconds) for seed in args.seed
            ]
            cases.append(Case(policy, slots, tuple(outcomes)))
    console.print(table(cases, _title(plant, seconds, args.seed)))
    for line in warnings(cases):
        console.print(line, highlight=False)
    draw(cases, args.picture)
    console.print(f"picture in {args.picture}", highlight=False)
    return 0


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


def table(cases: Sequence[Case], title: str) -> Table:
    """One line for each sink of each case; the pool's figures stand in the first of them."""
    shown = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 0, 0, 1))
    for column in COLUMNS[:3]:
        shown.add_column(column, overflow="fold", min_width=len(column) - 1)
    for column in COLUMNS[3:]:
        shown.add_column(column, justify="right", no_wrap=True)
    for case in cases:
        for number, sink in enumerate(case.sinks):
            first = (case.policy, str(case.slots)) if number == 0 else ("", "")
            last = _pool_cells(case) if number == 0 else ("", "", "")
            shown.add_row(*first, sink, *_sink_cells(case, sink), *last)
    return shown


def _sink_cells(case: Case, sink: str) -> tuple[str, ...]:
    told = [outcome.sinks[sink] for outcome in case.outcomes]
    target = "" if told[0].target_seconds is None else f"{told[0].target_seconds:g}"
    if not all(each.latency.count for each in told):
        return ("none", "", target, "")
    in_time = _spread([100.0 * each.share_in_time for each in told])
    p50, p99 = (_spread(case.quantiles(sink, q)) for q in (0.5, 0.99))
    return (p50, p99, target, in_time if target else "")


def _pool_cells(case: Case) -> tuple[str, ...]:
    outcomes = case.outcomes
    turns = [sum(stage.turns for stage in each.stages.values()) / each.seconds for each in outcomes]
    return (
        _spread([100.0 * each.slots_busy for each in outcomes]),
        _spread(turns),
        _spread([each.backlog_seconds for each in outcomes]),
    )


def _spread(values: Sequence[float]) -> str:
    """The median and, where seeds differ, half the range."""
    middle, half = _short(median(values)), (max(values) - min(values)) / 2
    return middle if half <= 0.0005 * max(values) else f"{middle} ±{half:.1g}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def warnings(cases: Iterable[Case]) -> list[str]:
    """A sentence for each case in which rows pile up: its latency would grow with every further hour."""
    found = []
    for case in cases:
        worst = max(case.outcomes, key=lambda outcome: outcome.backlog_seconds)
        if worst.backlog_seconds > KEEPS_UP_SHARE * worst.seconds:
            stage = max(worst.stages.values(), key=lambda each: each.rows_waiting)
            found.append(
                f"{case.policy} on {case.slots} slots does not keep up: {worst.backlog_seconds:,.0f} s of "
                f"input wait at the end, most of it at {stage.stage}"
            )
    return found


def draw(cases: Sequence[Case], file: Path) -> None:
    """p50 and p99 of each sink: over slots where there are several sizes, else beside each other."""
    from matplotlib.figure import Figure

    sinks = cases[0].sinks
    across = min(len(sinks), 3)
    down = -(-len(sinks) // across)
    figure = Figure(figsize=(4.2 * across, 3.0 * down), layout="constrained")
    places = figure.subplots(down, across, squeeze=False).flatten()
    for place, sink in zip(places, sinks, strict=False):
        _draw_sink(place, sink, cases)
    for place in places[len(sinks) :]:
        place.set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)


def _draw_sink(axes: Axes, sink: str, cases: Sequence[Case]) -> None:
    policies = list(dict.fromkeys(case.policy for case in cases))
    sizes = list(dict.fromkeys(case.slots for case in cases))
    for number, policy in enumerate(policies):
        own = [case for case in cases if case.policy == policy]
        at = [sizes.index(case.slots) + 0.12 * (number - (len(policies) - 1) / 2) for case in own]
        middle, tail = ([median(case.quantiles(sink, q)) for case in own] for q in (0.5, 0.99))
        above = [most - least for least, most in zip(middle, tail, strict=True)]
        color = COLORS[number % len(COLORS)]
        axes.errorbar(
            at, middle, yerr=[[0.0] * len(at), above], fmt="o", capsize=3, color=color, label=policy
        )
    target = cases[0].outcomes[0].sinks[sink].target_seconds
    if target is not None:
        axes.axhline(target, color="0.6", linestyle=":", linewidth=1)
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_yscale("log")
    axes.set_title(sink, fontsize=9)
    axes.set_xlabel("slots")
    axes.set_ylabel("latency, s: p50 up to p99")
    axes.legend(fontsize=7, frameon=False)
