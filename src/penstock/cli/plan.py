"""`penstock plan FILE.py`: what slots would lead to, from measured costs; nothing is started.

Costs are those of a state directory, from `penstock profile` or from a run; rates those of the sources, or
what a running engine measured in the last whole minute.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from penstock.cli.pipeline_file import load_pipelines
from penstock.cli.state_directory import DEFAULT, StateDirectory
from penstock.errors import PenstockError
from penstock.measure.profiles import Profiler
from penstock.pipeline.latency import parse_positive
from penstock.pipeline.nodes import Source
from penstock.pipeline.sources import Rate, Replay
from penstock.plan.forecast import Forecast, fewest_slots, forecast
from penstock.plan.forecast_models import MODELS, POOL, nearest
from penstock.plan.from_graphs import workflow_of
from penstock.plan.slot_changes import SlotDecision
from penstock.plan.slot_errors import SlotError
from penstock.plan.workflow import Workflow
from penstock.stages.fuse import cut
from penstock.stages.stage import StageGraph

AS_IS = "as it is"


@dataclass(frozen=True)
class Case:
    """One question: the load times `rate_factor`, on `slots` slots, or on as few as meet the targets."""

    name: str = AS_IS
    rate_factor: float = 1.0
    slots: int | None = None

    def answer(self, workflow: Workflow) -> Forecast:
        load = workflow.scaled(self.rate_factor)
        return fewest_slots(load) if self.slots is None else forecast(load, self.slots)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.py", help="declares the pipelines")
    parser.add_argument(
        "--state",
        type=Path,
        default=DEFAULT,
        metavar="DIR",
        help="where costs are kept, by `penstock profile` or a run (default: ./%(default)s)",
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--slots", type=int, metavar="K", help="for so many slots (default: the cores)")
    asked.add_argument(
        "--fewest", action="store_true", help="for as few slots as meet the target of every sink"
    )
    parser.add_argument("--target", metavar="TIME", help="for every sink, instead of its own: 800ms")
    parser.add_argument(
        "--rows",
        action="append",
        default=[],
        type=_rows,
        metavar="PIPELINE.SOURCE=N",
        help="rows per second of a source whose rate is not known; may be given again",
    )
    parser.add_argument(
        "--model",
        choices=tuple(MODELS),
        help="that tells of stages with slots of their own (default: what the engine chose, else bulk)",
    )
    parser.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="CASE",
        help="answer this too: rate=2x, slots=8 or rate=2x,slots=8; may be given again",
    )
    parser.add_argument(
        "--picture", type=Path, default=Path("plan.png"), help="where it goes (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    graphs = [cut(pipeline) for pipeline in load_pipelines(args.file)]
    state = StateDirectory(args.state)
    workflow = known_workflow(graphs, state, dict(args.rows))
    chosen = {} if args.model else chosen_models(state, workflow)
    workflow = with_models(workflow, args.model, chosen)
    if args.target is not None:
        seconds = parse_positive(args.target, "target", "no slots could meet it")
        workflow = replace(
            workflow, products=tuple(replace(each, target_seconds=seconds) for each in workflow.products)
        )
    slots = args.slots if args.slots is not None else os.cpu_count() or 1
    slots = None if args.fewest else slots
    base = Case(slots=slots)
    console = Console()
    answered = answers(workflow, [base, *(what_if(text, base) for text in args.what_if)], console)
    for case, found in answered:
        console.print(stage_table(case, found))
    if chosen:
        told = ", ".join(sorted(set(chosen.values())))
        console.print(f"models: nearest to those that the engine chose last ({told})", highlight=False)
    console.print(sink_table(answered))
    for case, found in answered:
        console.print(advice(case, found), highlight=False)
    if answered:
        from penstock.cli.plan_picture import draw

        draw(workflow, answered[0][1], args.picture)
        console.print(f"picture in {args.picture}", highlight=False)
    return 0 if len(answered) == 1 + len(args.what_if) else 1


def answers(workflow: Workflow, cases: Sequence[Case], console: Console) -> list[tuple[Case, Forecast]]:
    """For each case, as far as there is one; why not, else, is said."""
    answered = []
    for case in cases:
        try:
            answered.append((case, case.answer(workflow)))
        except SlotError as error:
            console.print(f"{case.name}: {error}", highlight=False)
    return answered


def what_if(text: str, base: Case) -> Case:
    """`rate=2x,slots=8`, on top of the base case."""
    case = replace(base, name=text)
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        try:
            if key == "rate" and value.endswith("x") and float(value[:-1]) > 0:
                case = replace(case, rate_factor=float(value[:-1]))
                continue
            if key == "slots" and int(value) > 0:
                case = replace(case, slots=int(value))
                continue
        except ValueError:
            pass
        raise PenstockError(f"a what-if must be rate=2x, slots=8 or both with a comma, got {text!r}")
    return case


def known_workflow(
    graphs: Sequence[StageGraph], state: StateDirectory, rows: Mapping[str, float]
) -> Workflow:
    """Costs and rates of all stages; refuses stages whose costs or rates are not known."""
    profilers = {name: Profiler.from_json(stored) for name, stored in state.profiles().items()}
    costs = {name: profiler.profile for name, profiler in profilers.items()}
    names = [stage.name for graph in graphs for stage in graph.stages]
    unknown = [name for name in names if (known := costs.get(name)) is None or not known.trusted]
    if unknown:
        raise PenstockError(
            f"the costs of all stages must be known, {state.path} has none of {', '.join(unknown)}: "
            "run `penstock profile` on the file first, or the pipelines themselves for a while"
        )
    selectivity = {name: known.selectivity for name, known in costs.items() if known is not None}
    rates = rates_of(graphs, state, rows, selectivity)
    return workflow_of(graphs, costs.get, rates, loops=True, all_sinks=True)


def chosen_models(state: StateDirectory, workflow: Workflow) -> dict[str, str]:
    """By stage, those that the engine went by when it last looked at its slots; empty where it never did."""
    chosen: dict[str, str] = {}
    for line in state.slots():
        if isinstance(line, SlotDecision):
            chosen.update(line.models)
    return {name: model for name, model in chosen.items() if name in workflow.places}


def with_models(workflow: Workflow, model: str | None, chosen: Mapping[str, str]) -> Workflow:
    """Every stage by `model`, else by what is nearest to the chosen one."""
    stages = (
        replace(each, model=model or nearest(chosen.get(each.name, each.model))) for each in workflow.stages
    )
    return replace(workflow, stages=tuple(stages))


def rates_of(
    graphs: Sequence[StageGraph],
    state: StateDirectory,
    rows: Mapping[str, float],
    selectivity: Mapping[str, float],
) -> dict[str, float]:
    """Rows per second from outside, by the stage that reads them.

    What was asked for comes first, then what a running engine measured, then what the source declares. An
    engine measures all that comes to a stage: what other stages make of their rows is taken off.
    """
    known = {f"{graph.pipeline}.{each.name}" for graph in graphs for each in _sources(graph)}
    if wrong := sorted(rows.keys() - known):
        raise PenstockError(
            f"--rows must name a source as PIPELINE.SOURCE, got {wrong[0]!r}, of: {', '.join(sorted(known))}"
        )
    measured = state.last_rates() if state.engine_process else {}
    rates: dict[str, float] = {}
    for graph in graphs:
        for stage in graph.stages:
            declared = [graph.queues[name].source for name in stage.inputs if name in graph.queues]
            declared.append(stage.native)
            sources = [each for each in declared if each is not None]
            if not sources:
                continue
            full = [f"{graph.pipeline}.{source.name}" for source in sources]
            if stage.name in measured and not any(name in rows for name in full):
                above = (each.name for each in graph.stages if stage in graph.below(each, loops=True))
                inside = sum(measured.get(name, 0.0) * selectivity[name] for name in above)
                rates[stage.name] = max(measured[stage.name] - inside, 0.0)
                continue
            rates[stage.name] = sum(
                rows[name] if name in rows else _declared_rate(name, source.spec, state)
                for name, source in zip(full, sources, strict=True)
            )
    return rates


def _sources(graph: StageGraph) -> list[Source]:
    filled = [queue.source for queue in graph.queues.values()]
    return [each for each in (*filled, *(stage.native for stage in graph.stages)) if each is not None]


def _declared_rate(name: str, spec: object, state: StateDirectory) -> float:
    if isinstance(spec, Replay | Rate):
        return float(spec.rows_per_second)
    raise PenstockError(
        f"the rate of source {name!r} must be known, and a {type(spec).__name__} does not tell: "
        f"give --rows {name}=N, or plan while an engine runs on {state.path}"
    )


def _rows(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        rate = float(value)
    except ValueError:
        rate = -1.0
    if "." not in name or not 0.0 <= rate < inf:
        raise argparse.ArgumentTypeError(f"must be PIPELINE.SOURCE=ROWS_PER_SECOND, got {text!r}")
    return name, rate


def stage_table(case: Case, found: Forecast) -> Table:
    how = "each stage has its own"
    if found.shared:
        wide = any(stage.model != POOL for stage in found.stages)
        how = f"{found.shared} of them shared by the smaller stages" if wide else "shared by all stages"
    title = f"{case.name}: {found.slots} slots, {how}"
    shown = Table(title=title, title_justify="left", box=box.SIMPLE)
    shown.add_column("stage")
    for column in ("rows/s", "slots", "of them busy", "a row stays, s"):
        shown.add_column(column, justify="right")
    shown.add_column("model")
    for stage in found.stages:
        slots = "turns" if stage.model == POOL else str(stage.slots)
        shown.add_row(
            stage.name,
            f"{stage.rows_per_second:,.6g}",
            slots,
            f"{stage.busy_slots:.2f}",
            _told(stage.seconds),
            stage.model,
        )
    return shown


def sink_table(answered: Sequence[tuple[Case, Forecast]]) -> Table:
    shown = Table(title="mean latency at the sinks, predicted", title_justify="left", box=box.SIMPLE)
    for column in ("case", "sink"):
        shown.add_column(column)
    for column in ("slots", "latency s", "target s", ""):
        shown.add_column(column, justify="right")
    for case, found in answered:
        for sink in found.sinks:
            free = sink.target_seconds == inf
            verdict = "" if free else "met" if sink.met else "missed"
            target = "" if free else f"{sink.target_seconds:g}"
            shown.add_row(case.name, sink.name, str(found.slots), _told(sink.seconds), target, verdict)
    return shown


def advice(case: Case, found: Forecast) -> str:
    """What would help next, and what would break first."""
    helps = (
        f"one more slot would help most at {found.helps}, by {1000 * found.gain_seconds:.3g} ms"
        if found.gain_seconds > 0.0
        else "one more slot would help nowhere"
    )
    breaks = (
        f"the next bottleneck is {found.bottleneck}, at {found.bottleneck_rate:.3g} times the load"
        if found.bottleneck_rate < inf
        else "no stage is near its limit"
    )
    unseen = ", ".join(stage.name for stage in found.stages if stage.unseen)
    beyond = f"; beyond what was measured, as turns would be far larger: {unseen}" if unseen else ""
    return f"{case.name}: {helps}; {breaks}{beyond}"


def _told(seconds: float) -> str:
    return "without end" if seconds == inf else f"{seconds:.3f}"
