"""The ceiling of the design: turns that one driver starts and finishes, and what they spend their time on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.bench.result import BenchResult, Table
from penstock.bench.stats import single
from penstock.bench.workers import Worker

STAGES, ROWS = 40, 800
WARMUP_SECONDS, SECONDS = 15.0, 15.0


def driver_turns(
    folder: Path, result: BenchResult, say: Callable[[str], None], seconds: float = SECONDS
) -> float:
    """Of one row each: without a job, as small turns run, and as jobs; the latter is what is returned."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, jobs in (("driver_turns_per_s", False), ("driver_turns_per_s_jobs", True)):
        place = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
        with Worker("penstock.bench.elastic.driver_worker", place) as worker:
            worker.ready()
            rows = int(ROWS * (WARMUP_SECONDS + seconds) / (WARMUP_SECONDS + SECONDS))
            told = worker.ask(jobs=jobs, stages=STAGES, rows=rows, warmup=WARMUP_SECONDS, seconds=seconds)
        say(f"  {name}: {told['turns_per_second']:.1f}")
        result.put(name, single(told["turns_per_second"]))
        found[name] = told
    result.tables += [_where(found), _used(found)]
    result.setup["driver_turns"] = {
        "of": f"{STAGES} pipelines of one stage, a row each turn, 2 slots in the driver's own process; "
        "small turns run without a job, and once with one, as all but the cheapest do on a cluster",
        "profile": found,
    }
    return float(found["driver_turns_per_s_jobs"]["turns_per_second"])


def _where(found: Mapping[str, Mapping[str, Any]]) -> Table:
    places = list(dict.fromkeys(place for told in found.values() for place in told["where"]))
    rows = [[place, *(f"{told['where'].get(place, 0.0):.0%}" for told in found.values())] for place in places]
    return Table("where turns spend their time, by samples of their stacks", ["", "no job", "jobs"], rows)


def _used(found: Mapping[str, Mapping[str, Any]]) -> Table:
    def cell(told: Mapping[str, Any], name: str) -> str:
        value = told["python_cpu_ms"] if name == "Python" else told["java_cpu_ms"].get(name, 0.0)
        return f"{value:.2f}"

    names = ["Python", *dict.fromkeys(name for told in found.values() for name in told["java_cpu_ms"])]
    rows = [[name, *(cell(told, name) for told in found.values())] for name in names]
    return Table("processor time of a turn, ms", ["", "no job", "jobs"], rows)
