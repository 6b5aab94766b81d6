"""`penstock bench riot`: the RIoTBench topologies, a stage for each operator, with Penstock and without."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.bench.report import write_json
from penstock.bench.result import BenchResult, BenchSettings, Plot, at_least, at_most
from penstock.bench.riot.burst import Burst, Overload, burst
from penstock.bench.riot.compare import OWN_POLICY, Comparison, Job, Times, compare
from penstock.bench.riot.figures import BALANCE_TOPOLOGY, note, put_figures
from penstock.bench.riot.plots import plots_of
from penstock.bench.stats import single
from penstock.scheduling.catalog import POLICIES
from penstock.workloads.mosquitto import Mosquitto, Subscriber

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOPOLOGIES = ("etl", "pred", "stats", "train")
PARTS = ("curves", "beyond", "balance", "policies", "consumption", "fused", "jobs", "burst")
CONSUMPTIONS = ("all", "half", "at-most-10", "at-most-50", "at-most-100", "at-most-500", "at-most-5000")
CONSUMPTION_TOPOLOGY = "stats"
# Rates to begin the searches with, so that they take few steps; they go up and down from there. `beyond` is
# where throughput alone counts.
START_RATES: Mapping[str, Mapping[str, float]] = {
    "etl": {"plain": 4.0, "ours": 400.0, "beyond": 400.0},
    "pred": {"plain": 4.0, "ours": 800.0, "beyond": 400.0},
    "stats": {"plain": 4.0, "ours": 150.0, "beyond": 200.0},
    "train": {"plain": 4.0, "ours": 20.0, "beyond": 40.0},
}
FULL = Times(
    warmup=50.0,
    settle=3.0,
    measured=8.0,
    rounds=3,
    refinements=2,
    queue_rounds=5,
    rows=100.0,
    longest=40.0,
    descents=5,
    confirmations=4,
    again=True,
)
QUICK = Times(warmup=5.0, settle=1.0, measured=2.0, rounds=1, refinements=0)
# ETL publishes one message for each reading, so that lost rows can be told exactly.
BURST_TOPOLOGY, BURST_SINK_ROWS = "etl", 1.0
BURST_SECONDS = 300.0
# The rate is twice the one held; where that is limited by latency alone, more than is kept up with at all.
BURST_OVER_HELD, BURST_OVER_KEPT_UP = 2.0, 1.5
BURST_WAITING_SECONDS = 10.0
"""So many seconds of rows must have waited, or it was no burst."""
PART_TOPOLOGY: Mapping[str, str] = {
    "balance": BALANCE_TOPOLOGY,
    "consumption": CONSUMPTION_TOPOLOGY,
    "burst": BURST_TOPOLOGY,
}
"""Parts that are measured of one topology only."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topology", action="append", choices=TOPOLOGIES, help="only these (repeatable)")
    parser.add_argument(
        "--policy", action="append", choices=sorted(POLICIES), help="beside longest-queue (repeatable)"
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="only these parts, and the curves")
    parser.add_argument(
        "--rate",
        type=float,
        metavar="ROWS",
        help="where the search for our rate begins; of a burst by itself, the rate before it",
    )
    parser.add_argument(
        "--rates", type=rates_in, metavar="A,B,C", help="run both sides at these rates, without a search"
    )
    parser.add_argument(
        "--instances", choices=("one", "paper"), default="one", help="of each operator: 1, or as the paper"
    )
    parser.add_argument("--burst-rate", type=float, metavar="ROWS", help="instead of twice the rate held")
    parser.add_argument("--burst-seconds", type=float, default=BURST_SECONDS, metavar="S")


def rates_in(text: str) -> tuple[float, ...]:
    """Rates as they are written on the command line.

    >>> rates_in("100,250.5")
    (100.0, 250.5)
    """
    try:
        rates = tuple(sorted(float(part) for part in text.split(",")))
    except ValueError:
        rates = ()
    if not rates or rates[0] <= 0:
        raise argparse.ArgumentTypeError(
            f"rates must be positive numbers with commas between them, got {text!r}: nothing could be fed"
        )
    return rates


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
            _put_burst(result, settings, made, Path(scratch), broker)
    result.setup |= described(settings)
    return result


def _keep(made: Mapping[str, Comparison], settings: BenchSettings) -> None:
    """Writes what is known so far: the whole takes an hour."""
    known = BenchResult("riot", setup={**described(settings), "so far": list(made)})
    put_figures(known, made)
    write_json(known, settings.json)


def parts(settings: BenchSettings) -> Sequence[str]:
    """Those asked for by name, and the policies where one is; else all, or the few of a quick run."""
    few = settings.quick or settings.option("rates")
    chosen = tuple(settings.option("only") or (("curves",) if few else PARTS))
    return (*chosen, "policies") if settings.option("policy") and "policies" not in chosen else chosen


def jobs(settings: BenchSettings) -> list[Job]:
    """What to measure of which topology; none where only the burst is asked for, at a rate that is given."""
    wanted = parts(settings)
    if set(wanted) == {"burst"} and settings.option("burst_rate"):
        return []
    others = settings.option("policy") or ("min-latency", "min-memory", "random")
    return [_job(name, wanted, others, settings) for name in _names(wanted, settings)]


def _names(wanted: Sequence[str], settings: BenchSettings) -> Sequence[str]:
    """The topologies asked for; else those that the parts need."""
    if settings.option("topology"):
        return tuple(settings.option("topology"))
    if settings.quick:
        return (BALANCE_TOPOLOGY,)
    needed = {PART_TOPOLOGY.get(part, "") for part in wanted}
    return TOPOLOGIES if "" in needed else [name for name in TOPOLOGIES if name in needed]


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
        as_jobs="jobs" in wanted,
        balance="balance" in wanted and name == BALANCE_TOPOLOGY,
        rates=settings.option("rates") or (),
        instances=settings.option("instances", "one"),
    )


def _put_burst(
    result: BenchResult,
    settings: BenchSettings,
    made: Mapping[str, Comparison],
    scratch: Path,
    broker: Mosquitto,
) -> None:
    overload = _overload(settings, made)
    if overload is None:
        why = f"{BURST_TOPOLOGY} held no rate" if BURST_TOPOLOGY in made else f"{BURST_TOPOLOGY} was not run"
        note(result, f"rss_growth_mb and lost were not measured: {why}, and no --burst-rate was given")
        return
    folder = scratch / "burst"
    folder.mkdir()
    with Subscriber(broker, "riot/#") as counter:
        seen = burst(overload, folder, broker.port, lambda: counter.count, settings.say)
    put_burst(result, seen)


def _overload(settings: BenchSettings, made: Mapping[str, Comparison]) -> Overload | None:
    curve = made[BURST_TOPOLOGY].ours if BURST_TOPOLOGY in made else None
    rate = settings.option("burst_rate") or 0.0
    held = (not made and settings.option("rate")) or rate / BURST_OVER_HELD
    if not rate and curve is not None and curve.highest is not None and curve.highest_kept_up is not None:
        held = curve.highest.rate
        rate = max(BURST_OVER_HELD * held, BURST_OVER_KEPT_UP * curve.highest_kept_up.rate)
    if not rate:
        return None
    seconds = settings.option("burst_seconds", BURST_SECONDS)
    instances = settings.option("instances", "one")
    return Overload(BURST_TOPOLOGY, held, rate, seconds, BURST_SINK_ROWS, instances)


def put_burst(result: BenchResult, seen: Burst) -> None:
    """The figures of a burst, and its picture."""
    result.put("rss_growth_mb", single(seen.growth_mb), at_most(100.0))
    result.put("rss_peak_mb", single(seen.peak_mb))
    result.put("lost", single(float(seen.lost)), at_most(0.0))
    result.put("burst_doubled", single(float(seen.doubled)), at_most(0.0))
    result.put("burst_rate", single(seen.rate))
    waiting = min(BURST_WAITING_SECONDS, seen.seconds / 10) * seen.rate
    result.put("burst_waiting_rows", single(float(seen.most_waiting)), at_least(waiting))
    result.put("burst_spool_mb", single(seen.spool_mb))
    result.put("burst_drain_seconds", single(seen.drain_seconds))
    result.plots.append(Plot("burst", lambda figure: _draw_burst(figure, seen)))


def _draw_burst(figure: Figure, seen: Burst) -> None:
    axes = figure.add_subplot()
    axes.plot(*zip(*seen.memory_mb, strict=True), "o-", color="#0072B2")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"seconds at {seen.rate:,.0f} rows/s")
    axes.set_ylabel("memory of driver and Spark, MB")


def described(settings: BenchSettings) -> dict[str, object]:
    """How the figures came about, for whoever reads the file."""
    times = QUICK if settings.quick else FULL
    return {
        "times": vars(times),
        "policy": OWN_POLICY,
        "instances": settings.option("instances", "one"),
        "rival": "one always-on streaming query for each operator on plain Spark: 2 task slots, FAIR pools, "
        "tuned checkpoints, one shuffle partition, looking for files every 50 ms while idle (Spark's "
        "default is 10), as many files a batch as there are, the same operators, Parquet segments between "
        "them. What differs beside the scheduling: it plans each batch and runs it as a job, where Penstock "
        "plans stages once, and runs small turns without state and turns of one task with state without a "
        "job; T_as_jobs_* are of Penstock without that",
        "warm": "the rival's search is done twice, as its code is cold at first, and the higher rate counts; "
        "its segments are removed after every step",
        "latency": "from a row's arrival at the source until the broker has acknowledged its messages",
        "held": "mean latency under 1 s, rows late in the step take no longer than early ones, no stage's "
        "queue keeps more than 5% of what comes to it, and at least 90% of the rows due are published; the "
        "highest such rate is run twice",
        "step": "until 100 rows came, at least 8 s and at most 40 s",
        "consumption": "`all`, too, is cut to turns of about 1 s (the engine's grain) and to four times the "
        "rows of any turn before",
        "memory": "after a collection of both processes, the median of the burst's last quarter less that at "
        "the rate held before it; heap as users have it by default, and a harness that keeps nothing",
        "fed": "every 100 ms a tenth of the rate, from the trace in a loop",
    }
