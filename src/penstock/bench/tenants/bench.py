"""`penstock bench tenants`: deadlines across tenants, the scenarios of Cameo's evaluation."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from penstock.bench.report import write_json
from penstock.bench.result import BenchResult, BenchSettings, Plot, Table
from penstock.bench.tenants import plots
from penstock.bench.tenants.lateness import told
from penstock.bench.tenants.scenarios import SCENARIOS, put_overload
from penstock.bench.tenants.side import SIDES
from penstock.bench.tenants.stand import FAIR_TRIED, SLOTS, Stand, Times
from penstock.bench.tenants.tables import table_of

FULL = Times(warmup=60.0, measured=120.0, heat=120.0)
# Within two minutes; too short for warm code and for the search, so that it only shows that everything works.
QUICK = Times(warmup=6.0, measured=12.0)
QUICK_BULK_ROWS = 200_000.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scenario", action="append", choices=tuple(SCENARIOS), help="only these (repeatable; default: all)"
    )
    parser.add_argument("--warmup", type=float, metavar="S", help="seconds of warm-up of each run")
    parser.add_argument("--measured", type=float, metavar="S", help="seconds measured of each run")
    parser.add_argument(
        "--bulk",
        choices=("tumbling", "sliding"),
        default="tumbling",
        help="windows of the bulk tenants: of 10 s over events that are text, or the last 10 s every second "
        "over events that are parsed (default: %(default)s)",
    )
    parser.add_argument(
        "--capacity",
        type=float,
        metavar="ROWS",
        help="bulk rows/s that plain Spark bears, if known: no search",
    )


def run(settings: BenchSettings) -> BenchResult:
    """The scenarios one after the other; each side in a JVM of its own, kept warm."""
    result = BenchResult("tenants")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-tenants-", ignore_cleanup_errors=True) as scratch,
        closing(
            Stand(
                Path(scratch),
                chosen_times(settings),
                settings.say,
                settings.option("capacity"),
                settings.option("bulk") == "sliding",
                () if settings.quick else FAIR_TRIED,
            )
        ) as stand,
    ):
        if settings.quick:
            _quick(stand, result)
        else:
            for name in settings.option("scenario") or SCENARIOS:
                settings.say(f"scenario {name}")
                SCENARIOS[name](stand, result)
                _keep(result, stand, settings)
        result.setup |= described(stand) | {"tables": told_tables(result.tables)}
    return result


def _keep(result: BenchResult, stand: Stand, settings: BenchSettings) -> None:
    """Writes what is known so far: all scenarios take hours."""
    known = described(stand) | {"tables": told_tables(result.tables)}
    write_json(replace(result, setup={**result.setup, **known}), settings.json)


def chosen_times(settings: BenchSettings) -> Times:
    usual = QUICK if settings.quick else FULL
    warmup, measured = settings.option("warmup"), settings.option("measured")
    return replace(
        usual,
        warmup=usual.warmup if warmup is None else warmup,
        measured=usual.measured if measured is None else measured,
    )


def _quick(stand: Stand, result: BenchResult) -> None:
    """One bulk rate that is too much for plain Spark, on the rivals and on ours."""
    load = stand.mixed(stand.known_capacity or QUICK_BULK_ROWS)
    runs = stand.compare(("fifo", "fair", "ours"), load)
    put_overload(result, {each.side: [each] for each in runs})
    result.tables.append(table_of("volume", runs, "bulk rows/s"))
    result.plots.append(Plot("volume", partial(plots.draw_latency, runs=runs, across="bulk rows/s")))


def told_tables(tables: Sequence[Table]) -> dict[str, list[dict[str, str]]]:
    """The tables for the JSON file: by title, a line for each run."""
    return {
        table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows] for table in tables
    }


def described(stand: Stand) -> dict[str, object]:
    """How the figures came about, for whoever reads the file."""
    return {
        "times": vars(stand.times),
        "slots": SLOTS,
        "sides": dict(SIDES),
        "real_time": stand.real_time_said,
        "bulk_capacity_fifo": stand.known_capacity,
        "bulk_windows": "sliding" if stand.sliding else "tumbling",
        "feeder_lag_seconds": max((run.feeder_lag_seconds for run in stand.runs), default=0.0),
        "latency": "from the arrival of the message that completes a window's frontier until its result is "
        "at the sink; a result that is missing at the end counts with the time until then",
        "fed": "every 100 ms what is due: on plain Spark one Parquet file a job, on ours a segment for each "
        "source",
        "values": "every value at a sink is compared with a batch computation of the same rows",
        "fair_settings": [
            {
                "settings": str(run.load.fair),
                "urgent p50 s": f"{run.urgent.p50:.2f}",
                "p99 s": f"{run.urgent.p99:.2f}",
                "bulk rows done": f"{run.bulk.done:,.0f}",
                "chosen": run.load.fair == stand.fair,
            }
            for run in stand.fair_runs
        ],
        "late_results": [told(run) for run in stand.runs if run.side == "ours" and run.urgent.latencies],
        "runs_made": len(stand.runs),
    }
