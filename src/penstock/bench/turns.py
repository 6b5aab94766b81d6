"""`penstock bench turns`: what a turn costs, beside Spark's defaults and beside the same turn ungated."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from penstock.bench.decisions import STAGES, by_policy
from penstock.bench.hop import KINDS
from penstock.bench.lanes import ADVANCE_MILLIS, QUERIES, WINDOW
from penstock.bench.result import BenchResult, BenchSettings, Plot, Table, at_least, at_most
from penstock.bench.stats import Rounds, Summary, alternating, quantile, single, summary
from penstock.bench.turn_worker import ROWS_PER_TURN, SAME_ON_BOTH_SIDES, SLOTS
from penstock.bench.workers import Worker
from penstock.spark.session import preset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATIO_MARKS = {"stateless": 3.0, "stateful": 2.0}
PIPELINES = 100


@dataclass(frozen=True)
class Length:
    """How much is run."""

    warm_turns: int
    turns_a_block: int
    rounds: int
    warm_hops: int
    hops: int
    idle_turns: int
    idle_seconds: float
    settle_seconds: float
    decisions: int


Part = Callable[[BenchResult, Path, Length, BenchSettings], None]

FULL = Length(300, 20, 10, 600, 300, 2, 30.0, 10.0, 50_000)
QUICK = Length(40, 10, 3, 60, 40, 1, 5.0, 2.0, 10_000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        action="append",
        choices=list(PARTS),
        help="measure this part alone; may be given several times",
    )


def run(settings: BenchSettings) -> BenchResult:
    length = QUICK if settings.quick else FULL
    result = BenchResult("turns")
    result.setup |= _setup(length)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in settings.option("only") or (QUICK_PARTS if settings.quick else PARTS):
            (folder / part).mkdir()
            PARTS[part](result, folder / part, length, settings)
    return result


def _setup(length: Length) -> dict[str, Any]:
    ours = {key: setting.value for key, setting in preset(SLOTS).items()}
    return {
        "length": vars(length),
        "queries": {
            "source": f"Spark's rate-micro-batch on both sides, {ROWS_PER_TURN} rows a batch, one partition, "
            f"{ADVANCE_MILLIS} ms of event time a batch: there is always a next batch, and no file to read",
            "stateless": "filter and projection",
            "stateful": f"count over windows of {WINDOW}, watermark without delay, append mode",
            "action": "foreachBatch writes the batch to the noop format",
            "turn": "from the end of one action to the end of the next",
        },
        "sides": {
            "both": {"master": f"local[{SLOTS}]", **SAME_ON_BOTH_SIDES, **_java(ours)},
            "defaults": "SparkSession with nothing else set; the query started by writeStream",
            "ours": {"session": {**ours, **SAME_ON_BOTH_SIDES}, "query": "engine.start, policy fifo"},
            "order": "each side in a process of its own, both alive, blocks in turn; the other one rests in "
            "its callback and does no work",
        },
        "gate": "engine.start against writeStream in one session of ours, blocks in turn",
    }


def _java(ours: dict[str, str]) -> dict[str, str]:
    key = "spark.driver.extraJavaOptions"
    return {key: ours[key]}


def _decisions(result: BenchResult, _: Path, length: Length, settings: BenchSettings) -> None:
    settings.say(f"deciding {length.decisions} times among {STAGES} waiting stages")
    found = {name: summary(times, 0.1, 0.99) for name, times in by_policy(length.decisions).items()}
    worst = max(found.values(), key=lambda each: each.value)
    result.put("decision_us", _scaled(worst, 1e6), at_most(50))
    result.setup["decision"] = {
        "median_us": {name: each.value * 1e6 for name, each in found.items()},
        "note": "grant, log, end of turn, wait again; of the slowest policy, with p10 to p99",
    }


def _turns(result: BenchResult, folder: Path, length: Length, settings: BenchSettings) -> None:
    folders = {side: folder / side for side in ("defaults", "ours")}
    for each in folders.values():
        each.mkdir()
    settings.say("starting Spark twice: with its defaults, and with ours")
    with (
        Worker("penstock.bench.turn_worker", folders["defaults"], "--side", "defaults") as defaults,
        Worker("penstock.bench.turn_worker", folders["ours"], "--side", "ours") as ours,
    ):
        settings.say(f"warming up: {length.warm_turns} turns of each query")
        with ThreadPoolExecutor(2) as both:
            list(both.map(partial(_warm_up, length.warm_turns), (defaults, ours)))
        sides: dict[str, Rounds] = {}
        for query, mark in RATIO_MARKS.items():
            settings.say(f"{query}: {length.rounds} rounds of {length.turns_a_block} turns, side by side")
            n = length.turns_a_block
            sides[query] = alternating(
                partial(defaults.ask, lane=query, turns=n),
                partial(ours.ask, lane=query, turns=n),
                length.rounds,
            )
            result.put(f"{query}_ratio", sides[query].ratio(), at_least(mark))
            _put_times(result, query, sides[query])
        _gate(result, ours, length, settings)
    result.tables.append(_times_table(result))
    result.plots.append(Plot("turns", partial(_draw_turns, sides)))


def _warm_up(turns: int, worker: Worker) -> None:
    lanes = worker.ready()
    for _ in range(max(turns // 20, 1)):
        for lane in lanes:
            worker.ask(lane=lane, turns=min(turns, 20))


def _put_times(result: BenchResult, query: str, rounds: Rounds) -> None:
    result.put(f"{query}_defaults_ms", _scaled(summary(rounds.all_a), 1e3))
    result.put(f"{query}_ours_ms", _scaled(summary(rounds.all_b), 1e3))


def _gate(result: BenchResult, ours: Worker, length: Length, settings: BenchSettings) -> None:
    """The figure is that of the stateless query; the stateful one is told beside it."""
    for query in QUERIES:
        settings.say(f"{query}: the same turn with the gate and without it, {length.rounds} rounds")
        n = length.turns_a_block
        found = alternating(
            partial(ours.ask, lane=query, turns=n),
            partial(ours.ask, lane=f"ungated-{query}", turns=n),
            length.rounds,
        )
        mark = at_most(3) if query == "stateless" else None
        figure = "gate_overhead_ms" if query == "stateless" else f"gate_overhead_{query}_ms"
        result.put(figure, _scaled(found.difference(), 1e3), mark)


def _hop(result: BenchResult, folder: Path, length: Length, settings: BenchSettings) -> None:
    settings.say(f"hop: {length.warm_hops} to warm up, {length.hops} measured")
    with Worker("penstock.bench.hop", folder) as worker:
        worker.ready()
        warming = {kind: worker.ask(kind=kind, hops=length.warm_hops) for kind in KINDS}
        a_round = max(length.hops // length.rounds, 1)
        rounds = [{kind: worker.ask(kind=kind, hops=a_round) for kind in KINDS} for _ in range(length.rounds)]
    times = {kind: [each for one in rounds for each in one[kind]] for kind in KINDS}
    result.put("hop_ms", _scaled(summary(times["direct"]), 1e3), at_most(50))
    result.put("hop_stateful_ms", _scaled(summary(times["planned"]), 1e3))
    result.put("hop_held_ms", _scaled(summary(times["held"]), 1e3))
    ratios = [median(one["held"]) / median(one["planned"]) for one in rounds]
    result.put("hop_planned_ratio", summary(ratios))
    result.setup["hop"] = {
        "direct": "append of 1,000 rows, filter and projection, to the publication of the result",
        "stateful": "the same with a running sum by key instead, over one plan",
        "held": "the same, in a query of Spark's that is held between its batches",
    }
    result.plots.append(Plot("hop", partial(_draw_hops, warming["direct"], times["direct"])))


def _idle(result: BenchResult, folder: Path, length: Length, settings: BenchSettings) -> None:
    settings.say(f"starting {PIPELINES} pipelines with state, {length.idle_turns} turns each")
    with Worker(
        "penstock.bench.idle", folder, "--pipelines", str(PIPELINES), "--turns", str(length.idle_turns)
    ) as worker:
        turns = worker.ready()["turns"]
        settings.say(f"watching them idle for {length.idle_seconds:g} s")
        seen = worker.ask(seconds=length.idle_seconds, settle_seconds=length.settle_seconds)
    result.put("idle_cores_100", single(seen["cores"]), at_most(0.1))
    result.put("rss_mb_100", single(seen["rss_mb"]), at_most(1500))
    result.setup["idle"] = {
        "pipelines": PIPELINES,
        "turns_each": turns,
        "processes": seen["processes"],
        "threads": seen["threads"],
        "note": "processor time and resident memory of the driver, its JVM and all below them",
    }


PARTS: dict[str, Part] = {"decisions": _decisions, "turns": _turns, "hop": _hop, "idle": _idle}
QUICK_PARTS = ("decisions", "turns", "hop")  # a hundred pipelines take a minute to start


def _scaled(one: Summary, factor: float) -> Summary:
    return Summary(one.value * factor, one.low * factor, one.high * factor, one.runs)


def _times_table(result: BenchResult) -> Table:
    figures = result.figures
    rows = []
    for query in QUERIES:
        plain, ours = figures[f"{query}_defaults_ms"], figures[f"{query}_ours_ms"]
        rows.append([query, f"{plain:.1f}", f"{ours:.1f}", f"{plain / ours:.2f}"])
    return Table("one turn, median ms", ["query", "Spark's defaults", "Penstock", "ratio"], rows)


def _draw_turns(sides: dict[str, Rounds], figure: Figure) -> None:
    axes = figure.subplots(1, len(sides))
    for place, (query, rounds) in zip(axes, sides.items(), strict=True):
        blocks = {"Spark's defaults": rounds.all_a, "Penstock": rounds.all_b}
        place.boxplot(
            [[1e3 * each for each in times] for times in blocks.values()],
            tick_labels=list(blocks),
            showfliers=False,
            whis=(10, 90),
        )
        place.set_ylim(bottom=0)
        place.set_title(f"{query}: {rounds.ratio().value:.1f} times")
        place.set_ylabel("turn, ms (p10, quartiles, p90)")


def _draw_hops(warming: Sequence[float], times: Sequence[float], figure: Figure) -> None:
    axes = figure.subplots()
    every = [1e3 * each for each in (*warming, *times)]
    axes.plot(every, ".", markersize=3, label="one hop")
    axes.axvline(len(warming), color="grey", linewidth=0.8, label="measured from here")
    axes.axhline(1e3 * quantile(times, 0.5), color="C1", linewidth=1, label="median")
    axes.set_ylim(0, 1.2 * quantile(every, 0.97))
    axes.set_xlabel("hop")
    axes.set_ylabel("ms")
    axes.legend()
