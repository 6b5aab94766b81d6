"""`penstock bench riot`: the RIoTBench topologies, a stage for each operator, with Penstock and without."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.bench.report import write_json
from penstock.bench.result import BenchResult, BenchSettings, Plot, at_most
from penstock.bench.riot.burst import Burst, Overload, burst
from penstock.bench.riot.compare import OWN_POLICY, Comparison, Job, Times, compare
from penstock.bench.riot.figures import BALANCE_TOPOLOGY, put_figures
from penstock.bench.riot.plots import plots_of
from penstock.bench.stats import single
from penstock.scheduling.catalog import POLICIES
from penstock.workloads.mosquitto import Mosquitto, Subscriber

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOPOLOGIES = ("etl", "pred", "stats", "train")
PARTS = ("curves", "beyond", "policies", "consumption", "fused", "jobs", "burst")
CONSUMPTIONS = ("all", "half", "at-most-10", "at-most-50", "at-most-100", "at-most-500", "at-most-5000")
CONSUMPTION_TOPOLOGY = "stats"
# Rates to begin the search with, so that it takes few steps; it goes up and down from there.
START_RATES: Mapping[str, Mapping[str, float]] = {
    "etl": {"plain": 40.0, "ours": 400.0},
    "pred": {"plain": 40.0, "ours": 800.0},
    "stats": {"plain": 20.0, "ours": 150.0},
    "train": {"plain": 4.0, "ours": 10.0},
}
FULL = Times(warmup=50.0, settle=3.0, measured=8.0, rounds=3, refinements=2)
QUICK = Times(warmup=5.0, settle=1.0, measured=2.0, rounds=1, refinements=0)
# ETL publishes one message for each reading, so that lost rows can be told exactly.
BURST_TOPOLOGY, BURST_SINK_ROWS = "etl", 1.0
BURST_SECONDS = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topology", action="append", choices=TOPOLOGIES, help="only these (repeatable)")
    parser.add_argument("--policy", action="append", choices=sorted(POLICIES), help="beside longest-queue")
    parser.add_argument("--only", action="append", choices=PARTS, help="only these parts, and the curves")
    parser.add_argument("--rate", type=float, metavar="ROWS", help="where the search for our rate begins")
    parser.add_argument("--burst-rate", type=float, metavar="ROWS", help="instead of twice the rate held")


def run(settings: BenchSettings) -> BenchResult:
    """Each topology in turn; then the burst."""
    result = BenchResult("riot")
    made: dict[str, Comparison] = {}
    with (
        tempfile.TemporaryDirectory(prefix="penstock-riot-", ignore_cleanup_errors=True) as scratch,
        Mosquitto() as broker,
    ):
        for job in jobs(settings):
            folder = Path(scratch) / job.topology
            folder.mkdir()
            made[job.topology] = compare(job, folder, broker.port, settings.say)
            _keep(made, settings)
        put_figures(result, made)
        result.plots += plots_of(made)
        if "burst" in parts(settings):
            with Subscriber(broker, "riot/#") as counter:
                _put_burst(result, settings, made, Path(scratch), broker.port, counter)
    result.setup |= described(settings)
    return result


def _keep(made: Mapping[str, Comparison], settings: BenchSettings) -> None:
    """Writes what is known so far: the whole takes an hour."""
    known = BenchResult("riot", setup={**described(settings), "so far": list(made)})
    put_figures(known, made)
    write_json(known, settings.json)


def parts(settings: BenchSettings) -> Sequence[str]:
    if settings.option("only"):
        return tuple(settings.option("only"))
    return ("curves",) if settings.quick else PARTS


def jobs(settings: BenchSettings) -> list[Job]:
    """What to measure of which topology; none where only the burst is asked for, at a rate that is given."""
    wanted = parts(settings)
    if set(wanted) == {"burst"} and settings.option("burst_rate"):
        return []
    names = settings.option("topology") or (("pred",) if settings.quick else TOPOLOGIES)
    others = settings.option("policy") or ("min-latency", "min-memory", "random")
    return [_job(name, wanted, others, settings) for name in names]


def _job(name: str, wanted: Sequence[str], others: Sequence[str], settings: BenchSettings) -> Job:
    rates = dict(START_RATES[name])
    if settings.option("rate"):
        rates["ours"] = settings.option("rate")
    return Job(
        topology=name,
        start_rate=rates,
        policies=others if "policies" in wanted else (),
        consumptions=CONSUMPTIONS if "consumption" in wanted and name == CONSUMPTION_TOPOLOGY else (),
        fused="fused" in wanted,
        times=QUICK if settings.quick else FULL,
        beyond="beyond" in wanted,
        as_jobs="jobs" in wanted and name == BALANCE_TOPOLOGY,
    )


def _put_burst(
    result: BenchResult,
    settings: BenchSettings,
    made: Mapping[str, Comparison],
    scratch: Path,
    port: int,
    counter: Subscriber,
) -> None:
    best = made[BURST_TOPOLOGY].ours.highest if BURST_TOPOLOGY in made else None
    rate = settings.option("burst_rate") or (2 * best.rate if best else 0.0)
    if not rate:
        return
    folder = scratch / "burst"
    folder.mkdir()
    overload = Overload(BURST_TOPOLOGY, rate, BURST_SECONDS, BURST_SINK_ROWS)
    seen = burst(overload, folder, port, lambda: counter.count, settings.say)
    result.put("rss_growth_mb", single(seen.growth_mb), at_most(100.0))
    result.put("lost", single(float(seen.lost)), at_most(0.0))
    result.put("burst_doubled", single(float(seen.doubled)), at_most(0.0))
    result.put("burst_rate", single(seen.rate))
    result.put("burst_waiting_rows", single(float(seen.most_waiting)))
    result.put("burst_drain_seconds", single(seen.drain_seconds))
    result.plots.append(Plot("burst", lambda figure: _draw_burst(figure, seen)))


def _draw_burst(figure: Figure, seen: Burst) -> None:
    axes = figure.add_subplot()
    axes.plot(*zip(*seen.memory_mb, strict=True), "o-", color="#0072B2")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds at twice the rate held")
    axes.set_ylabel("memory of driver and Spark, MB")


def described(settings: BenchSettings) -> dict[str, object]:
    """How the figures came about, for whoever reads the file."""
    times = QUICK if settings.quick else FULL
    return {
        "times": vars(times),
        "policy": OWN_POLICY,
        "rival": "one always-on streaming query for each operator on plain Spark: 2 task slots, FAIR pools, "
        "tuned checkpoints, one shuffle partition, the same operators, Parquet segments between them. What "
        "differs beside the scheduling: it plans each batch and runs it as a job, where Penstock plans "
        "stages once, and runs small turns without state and turns of one task with state without a job",
        "latency": "from a row's arrival at the source until the broker has acknowledged its messages",
        "held": "mean latency under 1 s, rows late in the step wait no longer than early ones, and at least "
        "60% of the rows due are published",
        "fed": "every 100 ms a tenth of the rate, from the trace in a loop",
    }
