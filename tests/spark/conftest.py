"""Engines and spools for Spark tests, and a way to wait that never hopes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from penstock import Engine, Spool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class EngineFactory(Protocol):
    """Opens an engine on the shared session; without `state` in a directory of the test's own."""

    def __call__(self, state: Path | None = None, **settings: Any) -> Engine: ...


class SpoolFactory(Protocol):
    """Opens a spool of the test's own, closed with the test."""

    def __call__(self, name: str = "input") -> Spool: ...


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Returns as soon as the condition holds; fails the test when it does not within the limit."""
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            pytest.fail(f"not so within {seconds:g} s")
        time.sleep(0.01)


def jobs_so_far(spark: SparkSession) -> int:
    """How many jobs Spark has been given, by whomever."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()  # type: ignore[union-attr]
    return int(scheduler.numTotalJobs())


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[SpoolFactory]:
    opened: list[Spool] = []

    def make(name: str = "input") -> Spool:
        opened.append(Spool(tmp_path / name))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def engine(spark: SparkSession, state: Path, spool: SpoolFactory) -> Iterator[EngineFactory]:
    # After `spool`: engines stop before the spools they read are closed.
    opened: list[Engine] = []
    default = state

    def make(state: Path | None = None, **settings: Any) -> Engine:
        # A cold turn must not cut the next ones: tests tell turns apart by their rows.
        made = Engine(spark, state=state or default, **{"slots": 2, "grain": "10m", **settings})
        opened.append(made)
        return made

    yield make
    for each in opened:
        each.stop()
