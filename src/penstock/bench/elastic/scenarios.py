"""The four runs of WordCount against each other: what elasticity saves, and what it costs in latency."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from statistics import fmean

from penstock.bench.elastic import plots
from penstock.bench.elastic.kept_runs import KeptRuns
from penstock.bench.elastic.scale import LABELS, SCENARIOS, Scale
from penstock.bench.elastic.stand import Run, Stand
from penstock.bench.result import BenchResult, Plot, Table, at_least, at_most
from penstock.bench.stats import Summary, quantile, single

TARGET_RATIO = 1.4
"""E[T] that models plan for, over the latency of the static run. The mean of a run lies below it: there are
no halves of replicas, and while the rate is low one is more than enough."""
LEFT_OUT_MINUTES = 2.0
"""After each reconfiguration, in the paper's second way of telling latency."""
MARKS = {
    "replica_saving": at_least(0.55),
    "node_saving": at_least(0.24),
    "node_saving_model": at_least(0.40),
    "latency_ratio": at_most(1.7),
    "latency_ratio_model": at_most(1.3),
    "reconfiguration_pause_ms": at_most(2000),
    "lost": at_most(0),
    "doubled": at_most(0),
}


@dataclass(frozen=True)
class Judged:
    """A run in a few figures; replicas and nodes are means over the time of the ramp."""

    replicas: float
    nodes: float
    latency_seconds: float
    settled_seconds: float
    """Without the two minutes of the paper after each reconfiguration."""
    reconfigurations: int
    """Changes of replicas."""


def judged(run: Run) -> Judged:
    return Judged(
        fmean(sum(each["slots"].values()) for each in run.samples),
        fmean(each["nodes"] for each in run.samples),
        run.counted.latencies.mean,
        _settled_seconds(run, run),
        len(_reconfigured(run)),
    )


def _reconfigured(run: Run) -> list[float]:
    return [each["at"] for each in run.changes if each["kind"] == "slots"]


def _settled_seconds(run: Run, reconfigured: Run) -> float:
    """Mean latency of a run without the time after each reconfiguration of another, or of its own."""
    return run.counted.latencies.without(_reconfigured(reconfigured), LEFT_OUT_MINUTES * run.scale.minute)


def scenarios(
    stand: Stand, result: BenchResult, only: Sequence[str] = SCENARIOS, kept: KeptRuns | None = None
) -> None:
    """Static, elastic operators, elastic operators and nodes; and the last with models.

    Runs that are kept are told together with those that are made now.
    """
    runs: dict[str, Run] = kept.of(stand.scale) if kept else {}
    for name in runs.keys() - set(only):
        stand.say(f"{runs[name].label}: kept from {time.strftime('%F %T', time.localtime(runs[name].began))}")
    for name in only:
        runs[name] = stand.run(name, _aimed(stand.scale, runs.get("static")))
        if kept is not None:
            kept.keep(runs[name])
        found = judged(runs[name])
        stand.say(
            f"  {found.replicas:.1f} replicas, {found.nodes:.1f} nodes, {found.latency_seconds:.2f} s; "
            f"{runs[name].counted.lost} lost, {runs[name].counted.doubled} doubled"
        )
    runs = {name: runs[name] for name in SCENARIOS if name in runs}
    tell(result, runs)
    result.plots.append(Plot("runs", lambda figure: plots.draw_runs(figure, list(runs.values()))))


def _aimed(scale: Scale, static: Run | None) -> Scale:
    """The model-based run plans for what the static one reached, times a factor."""
    if static is None:
        return scale
    return replace(scale, target_seconds=TARGET_RATIO * static.counted.latencies.mean)


def tell(result: BenchResult, runs: Mapping[str, Run]) -> None:
    """The figures of runs; those that need a run that was not made are left out."""
    made = {name: judged(run) for name, run in runs.items()}
    static = made.get("static")
    if static is not None:
        _against(result, made, static)
        _against_settled(result, runs)
        result.put("static_peak_use", single(runs["static"].peak_use))
    _pauses(result, runs)
    result.put("lost", single(sum(run.counted.lost for run in runs.values())), MARKS["lost"])
    result.put("doubled", single(sum(run.counted.doubled for run in runs.values())), MARKS["doubled"])
    result.tables.append(_table(runs, made))


def _pauses(result: BenchResult, runs: Mapping[str, Run]) -> None:
    """Of divisions of state, to the first results after them; beside that, how long stages stood still."""
    elastic = [run for name, run in runs.items() if name != "static"]
    found = [pause for run in elastic for pause in run.pauses]
    result.setup["pauses"] = {
        "reconfiguration_pause_ms": "a division of state: without a turn, and what the two turns after it "
        "took more than usual, as they load the state",
        "reconfiguration_stopped_ms": "without a turn alone",
        "divisions": len(found),
    }
    if found:
        result.put(
            "reconfiguration_pause_ms",
            _spread([each.until_result_seconds for each in found]),
            MARKS["reconfiguration_pause_ms"],
        )
        result.put("reconfiguration_stopped_ms", _spread([each.stopped_seconds for each in found]))
    elif elastic:
        # No state was divided, so that no turn had to wait.
        result.put("reconfiguration_pause_ms", single(0.0), MARKS["reconfiguration_pause_ms"])


def _spread(seconds: Sequence[float]) -> Summary:
    millis = [1000.0 * each for each in seconds]
    return Summary(quantile(millis, 0.95), min(millis), max(millis), len(millis))


def _against(result: BenchResult, made: Mapping[str, Judged], static: Judged) -> None:
    def put(figure: str, value: float | None) -> None:
        if value is not None and not isnan(value):
            result.put(figure, single(value), MARKS.get(figure))

    def ratio(name: str, what: str) -> float | None:
        run = made.get(name)
        return getattr(run, what) / getattr(static, what) if run is not None else None

    def saving(name: str, what: str) -> float | None:
        found = ratio(name, what)
        return None if found is None else 1.0 - found

    put("replica_saving", saving("nodes", "replicas"))
    put("replica_saving_operators", saving("operators", "replicas"))
    put("replica_saving_model", saving("model", "replicas"))
    put("node_saving", saving("nodes", "nodes"))
    put("node_saving_model", saving("model", "nodes"))
    put("latency_ratio", ratio("nodes", "latency_seconds"))
    put("latency_ratio_operators", ratio("operators", "latency_seconds"))
    put("latency_ratio_model", ratio("model", "latency_seconds"))


def _against_settled(result: BenchResult, runs: Mapping[str, Run]) -> None:
    """The same moments are left out of the static run; where changes leave no time nothing is told."""
    for name, figure in (("nodes", "latency_ratio_settled"), ("model", "latency_ratio_model_settled")):
        if name not in runs:
            continue
        ratio = _settled_seconds(runs[name], runs[name]) / _settled_seconds(runs["static"], runs[name])
        if not isnan(ratio):
            result.put(figure, single(ratio))


def _table(runs: Mapping[str, Run], made: Mapping[str, Judged]) -> Table:
    rows = [
        [
            LABELS[name],
            f"{each.replicas:.1f}",
            f"{each.nodes:.1f}",
            f"{each.latency_seconds:.2f}",
            f"{each.settled_seconds:.2f}",
            str(each.reconfigurations),
            str(runs[name].counted.sent),
            f"{runs[name].counted.lost}, {runs[name].counted.doubled}",
        ]
        for name, each in made.items()
    ]
    columns = ["run", "replicas", "nodes", "latency s", "settled s", "changes", "words", "lost, doubled"]
    return Table("WordCount on a ramp, means over the run (emulated service)", columns, rows)
