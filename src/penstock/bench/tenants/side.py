"""One way to run the tenants' jobs, as the worker sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from penstock.bench.tenants.feeder import Part
from penstock.bench.tenants.load import Load
from penstock.bench.tenants.meter import Counts, ResultMeter, RowMeter, Turn

SIDES: Mapping[str, str] = {
    "fifo": "plain Spark: one streaming query for each job, tuned checkpoints, FIFO",
    "fair": "the same with a FAIR pool for each query, more weight and a share of its own if urgent, by the "
    "settings that served it best",
    "gate": "Penstock's engine with policy fifo",
    "stages": "Penstock's engine with each query cut into two stages, by key and in all",
    "ours": "Penstock's engine with least laxity first, or the policy named; each query one stage",
    "realtime": "Spark's real-time mode, on the slots it needs: the first form of each query that it takes, "
    "from memory to a sink in the JVM",
}
RIVALS = ("fifo", "fair")
REAL_TIME = "realtime"
MEMORY = "4g"
SETTINGS: Mapping[str, str] = {"spark.driver.memory": MEMORY, "spark.sql.shuffle.partitions": "1"}
"""The same for all sides."""


class Side(Protocol):
    """Queries that run, and what they have done."""

    def start(self, folder: Path, load: Load, meters: Mapping[str, ResultMeter | RowMeter]) -> None:
        """Starts all jobs in an empty folder; results go to the meters, by job."""
        ...

    def stop(self) -> None:
        """Ends all jobs, with what waits; the session stays warm for the next load."""
        ...

    def put(self, job: str, due: float, parts: Sequence[Part], /) -> None:
        """Takes in what arrived for a job in one tick."""
        ...

    def done(self, job: str, end: float) -> Counts:
        """(when, rows): rows of the job's input whose results have left the query.

        Waits for what runs at `end`: only then is it known how long its rows took.
        """
        ...

    @property
    def error(self) -> str:
        """Why a query has ended; "" while all run."""
        ...

    @property
    def scheduler_seconds(self) -> float: ...

    @property
    def turn_seconds(self) -> float:
        """Seconds of turns so far; 0 where nobody counts them."""
        ...

    @property
    def cuts(self) -> tuple[int, int]:
        """Turns so far that were cut for another stage, and those of them that overran."""
        ...

    def turns(self, job: str) -> list[Turn]:
        """The turns that took the job's input, by time; none where there are no turns."""
        ...

    def window_turns(
        self, job: str, completed: Mapping[float, float], came: Mapping[float, float]
    ) -> list[int]:
        """For each window completed, turns from its frontier to its result; none where nobody counts."""
        ...
