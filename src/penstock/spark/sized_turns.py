"""An engine's stages, made to take turns of one size after the other, so that it is known what each costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.measure.batch_costs import BatchCost, costs_of
from penstock.measure.turns import TurnRecord

if TYPE_CHECKING:
    from penstock.spark.engine import Engine

ENOUGH_TURNS = 8
LOOK_SECONDS = 0.1

Feed = Callable[[int], object]
"""Gives the stages rows for some turns, in segments of so many."""


def batch_costs(
    engine: Engine, sizes: Sequence[int], seconds: float, feed: Feed, say: Callable[[str], None]
) -> list[BatchCost]:
    """The cost of each stage's turns at each size; a stage that never got so many rows is left out there."""
    stages = [report.stage for report in engine.stages()]
    records: list[TurnRecord] = []
    engine.on_turn(records.append)

    def run_at(size: int, seconds: float, turns: int = ENOUGH_TURNS) -> None:
        records.clear()
        engine.fix_batches(dict.fromkeys(stages, size))
        _run(engine, seconds, lambda: feed(size), lambda: _enough(records, stages, size, turns))

    # Once with all sizes before anything counts: cold code is slow.
    for size in sizes:
        run_at(size, seconds / 3)
    found: list[BatchCost] = []
    for size in sizes:
        run_at(size, seconds)
        costs = costs_of(tuple(records), size)
        say(f"{size:,} rows a turn: {len(costs)} of {len(stages)} stages had such turns")
        found += costs
    # What is learned fades within some turns: all sizes once more, so that it knows of all.
    for size in (*sizes, *sizes):
        run_at(size, seconds / 3, turns=2)
    return sorted(found, key=lambda each: (stages.index(each.stage), each.rows))


def _run(engine: Engine, seconds: float, feed: Callable[[], object], enough: Callable[[], bool]) -> None:
    """Feeds whenever nothing waits, until there were enough turns or the time is up; then lets all rows out.

    What was left would be in the turns of the next size: stages with state take segments whole.
    """
    end = time.monotonic() + seconds
    while not enough() and time.monotonic() < end:
        if _rows_waiting(engine) == 0:
            feed()
        time.sleep(LOOK_SECONDS)
    limit = time.monotonic() + seconds
    while _rows_waiting(engine) and time.monotonic() < limit:
        time.sleep(LOOK_SECONDS)


def _rows_waiting(engine: Engine) -> int:
    for name, state in engine.pipelines.items():
        if state == "failed":
            raise engine.error(name) or PenstockError(f"pipeline {name!r} failed")
    return sum(each.figures.rows_waiting for each in engine.stages())


def _enough(records: Sequence[TurnRecord], stages: Sequence[str], size: int, turns: int) -> bool:
    taken = [record.stage for record in tuple(records) if record.rows_in >= size]
    return all(taken.count(stage) >= turns for stage in stages)
