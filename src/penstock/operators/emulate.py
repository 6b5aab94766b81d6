"""Emulated service: a task waits instead of computing, so that a few cores pass for many slots."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.operators.java_functions import called_each_time
from penstock.pipeline.nodes import Operator
from penstock.pipeline.pipeline import Pipeline
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EMULATED = "service times are emulated: tasks wait instead of computing"
"""What the output of everything says that uses it."""


@dataclass(frozen=True)
class Service:
    """Rows as they are, each after a wait in the task that has it."""

    seconds_per_row: float
    scv: float = 0.0
    seed: int = 0
    units: str | None = None
    by_row: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.seconds_per_row < inf:
            raise PenstockError(
                f"seconds per row must be positive and finite, got {self.seconds_per_row}: "
                "there would be nothing to emulate"
            )
        if not 0.0 <= self.scv < inf:
            raise PenstockError(
                "the squared coefficient of variation of service times must be 0 or more and finite, "
                f"got {self.scv}: no times have it"
            )

    def __call__(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        session = rows.sparkSession
        function = jvm(session).penstock.EmulatedService(
            float(self.seconds_per_row), float(self.scv), self.seed
        )
        units = F.lit(1.0) if self.units is None else F.col(self.units)
        key = F.xxhash64(*rows.columns) if self.by_row else F.lit(None).cast("bigint")
        return rows.filter(called_each_time(session, "emulated_service", function, "BOOLEAN", units, key))


def service(
    seconds_per_row: float,
    scv: float = 0.0,
    seed: int = 0,
    units: str | None = None,
    *,
    by_row: bool = False,
) -> Service:
    """An operator that lets its task wait for each row, so long on average, and changes nothing.

    Times are drawn anew for each row: of gamma's distributions that with the squared coefficient of variation
    `scv` (0: always the same, 1: exponential). With `units`, a column of numbers, a row takes so many times
    as long, and none where it is null. A session of K slots (`build_session(cores=K)`) runs K tasks at once
    on however many cores. One seed gives one sequence of draws in a process, shared by all that have it; with
    `by_row` a row's draw follows from the seed and what is in the row, and is the same in every run.

    >>> service(0.05, scv=1.0, seed=7)
    Service(seconds_per_row=0.05, scv=1.0, seed=7, units=None, by_row=False)
    """
    return Service(seconds_per_row, scv, seed, units, by_row)


def emulated(pipeline: Pipeline) -> tuple[str, ...]:
    """The operators of a pipeline that wait instead of computing."""
    return tuple(
        each.name
        for each in pipeline.nodes.values()
        if isinstance(each, Operator) and isinstance(each.function, Service)
    )
