"""`penstock bench elastic`: replicas and nodes that follow the load on a real cluster; and kills."""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.bench.elastic.driver_turns import driver_turns
from penstock.bench.elastic.efficiency import MARKS as EFFICIENCY_MARKS
from penstock.bench.elastic.efficiency import scale_efficiency
from penstock.bench.elastic.kept_runs import KeptRuns
from penstock.bench.elastic.kills import MARKS as KILL_MARKS
from penstock.bench.elastic.kills import setup as kills_setup
from penstock.bench.elastic.kills import worker_kills
from penstock.bench.elastic.pred_nodes import MARKS as PRED_MARKS
from penstock.bench.elastic.pred_nodes import pred_nodes
from penstock.bench.elastic.scale import SCENARIOS, Scale
from penstock.bench.elastic.scenarios import MARKS as SCENARIO_MARKS
from penstock.bench.elastic.scenarios import scenarios
from penstock.bench.elastic.stand import Stand
from penstock.bench.report import write_json
from penstock.bench.result import BenchResult, BenchSettings, Mark
from penstock.operators.emulate import EMULATED
from penstock.workloads.rabbitmq import RabbitMQ

log = logging.getLogger("penstock")
QUICK = Scale(
    minute=3.0,
    minutes=8.0,
    peak=5.0,
    nodes=5,
    replicas={"split": 1, "count": 2, "publish": 1},
    reserve=1,
    peak_share=0.6,
    warmup=6.0,
)
"""One replica of each is not enough at its peak, so that nodes come."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", action="append", choices=tuple(PARTS), help="only these (default: all)")
    parser.add_argument(
        "--run",
        action="append",
        choices=SCENARIOS,
        help="of part scenarios only these runs; with --keep told together with those that are there",
    )
    parser.add_argument("--minute", type=float, metavar="S", help="what a minute of the paper takes here")
    parser.add_argument("--kills", type=int, metavar="N", help="workers to kill (default: 10)")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep runs there, with their logs and samples"
    )


def run(settings: BenchSettings) -> BenchResult:
    """The parts one after the other; each run has a cluster and a driver of its own."""
    result = BenchResult("elastic")
    with _folder(settings) as folder:
        if settings.quick:
            with _stand(folder, QUICK, settings) as stand:
                scenarios(stand, result, ("nodes",))
        else:
            result.setup |= _setup(_scale(settings))
            for name in settings.option("part") or PARTS:
                settings.say(name)
                _part(name, folder, result, settings)
    result.setup |= _setup(QUICK if settings.quick else _scale(settings))
    return result


def _part(name: str, folder: Path, result: BenchResult, settings: BenchSettings) -> None:
    """Runs a part. What fails is told, with its marks as missed, and costs no other part anything."""
    try:
        PARTS[name](folder, result, settings)
    except Exception as error:
        log.exception("part %s failed", name)
        settings.say(f"{name} failed: {error}")
        result.marks = {**MARKS[name], **result.marks}
        result.setup.setdefault("failed", {})[name] = f"{type(error).__name__}: {error}"
    write_json(result, settings.json)


@contextmanager
def _folder(settings: BenchSettings) -> Iterator[Path]:
    kept = settings.option("keep")
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield Path(tempfile.mkdtemp(prefix="made-", dir=kept.absolute()))
        return
    with tempfile.TemporaryDirectory(prefix="penstock-elastic-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)


@contextmanager
def _stand(folder: Path, scale: Scale, settings: BenchSettings) -> Iterator[Stand]:
    with RabbitMQ() as broker:
        yield Stand(folder, broker, scale, settings.say)


def _scale(settings: BenchSettings) -> Scale:
    return Scale(minute=settings.option("minute") or Scale.minute)


def _scenarios(folder: Path, result: BenchResult, settings: BenchSettings) -> None:
    with _stand(folder, _scale(settings), settings) as stand:
        kept = settings.option("keep")
        runs = settings.option("run") or SCENARIOS
        scenarios(stand, result, runs, KeptRuns(kept) if kept is not None else None)


def _kills(folder: Path, result: BenchResult, settings: BenchSettings) -> None:
    with _stand(folder, _scale(settings), settings) as stand:
        worker_kills(stand, result, settings.option("kills") or 10)


def _driver(folder: Path, result: BenchResult, settings: BenchSettings) -> None:
    driver_turns(folder, result, settings.say)


def _efficiency(folder: Path, result: BenchResult, settings: BenchSettings) -> None:
    scale_efficiency(folder, result, settings.say, result.figures.get("driver_turns_per_s_jobs"))


def _setup(scale: Scale) -> dict[str, object]:
    return {
        "scale": scale.to_json(),
        "emulated": f"{EMULATED}; a minute of the paper is {scale.minute:g} s, rates are a fortieth, nodes "
        "are workers of one slot on one machine, with executors that compile little",
        "service_seconds": scale.service,
        "latency": "from when a sentence was due until each of its words came to a consumer of RabbitMQ",
        "source": f"the sentences of {scale.tick:g} s come together, and are due then",
        "replicas": "of split, count and publish; the source takes no slot",
        "nodes": "worker processes, those that start or leave included",
        "shares": "S_a is the time of tasks, waiting included (time='run')",
        "static": f"its replicas are busy {scale.peak_share:.0%} of the time with the rows of the peak, "
        "beside what tasks take themselves: about three times what is needed, as the paper's savings imply; "
        "static_peak_use is the share of time in which its busiest stage had a turn then",
        "model": "replicas of the model-based run are at most those of the static one",
        **kills_setup(),
    }


MARKS: Mapping[str, Mapping[str, Mark]] = {
    "scenarios": SCENARIO_MARKS,
    "kills": KILL_MARKS,
    "driver": {},
    "efficiency": EFFICIENCY_MARKS,
    "pred": PRED_MARKS,
}
Part = Callable[[Path, BenchResult, BenchSettings], None]
PARTS: Mapping[str, Part] = {
    "scenarios": _scenarios,
    "kills": _kills,
    "driver": _driver,
    "efficiency": _efficiency,
    "pred": lambda folder, result, settings: pred_nodes(folder, result, settings.say),
}
