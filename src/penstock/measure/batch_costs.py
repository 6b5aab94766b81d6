"""What turns of different sizes cost, by stage: an engine's stages, made to take one size after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.measure.turns import TurnRecord

if TYPE_CHECKING:
    from penstock.spark.engine import Engine

SIZES = (1, 10, 100, 1_000, 10_000)
ENOUGH_TURNS = 8
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class BatchCost:
    """Turns of about one size of one stage."""

    stage: str
    rows: int
    turns: int
    seconds: float
    """The median of them."""

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


def batch_costs(
    engine: Engine,
    sizes: Sequence[int],
    seconds: float,
    say: Callable[[str], None],
    feed: Callable[[int], object] = lambda size: None,
) -> list[BatchCost]:
    """The cost of each stage's turns at each size; a stage that never got so many rows is left out there.

    `feed` gives the stages rows in segments of a size: one with state takes whole segments.
    """
    stages = [report.stage for report in engine.stages()]
    records: list[TurnRecord] = []
    engine.on_turn(records.append)
    # Once with all sizes before anything counts: cold code is slow.
    for size in sizes:
        feed(size)
        _run_at(engine, dict.fromkeys(stages, size), records, seconds / 3)
    found: list[BatchCost] = []
    for size in sizes:
        records.clear()
        feed(size)
        _run_at(engine, dict.fromkeys(stages, size), records, seconds)
        costs = costs_of(tuple(records), size)
        say(f"{size:,} rows a turn: {len(costs)} of {len(stages)} stages had such turns")
        found += costs
    # What is learned fades within some turns: all sizes once more, so that it knows of all.
    for size in (*sizes, *sizes):
        records.clear()
        feed(size)
        _run_at(engine, dict.fromkeys(stages, size), records, seconds / 3, turns=2)
    return sorted(found, key=lambda each: (stages.index(each.stage), each.rows))


def _run_at(
    engine: Engine,
    sizes: dict[str, int],
    records: list[TurnRecord],
    seconds: float,
    turns: int = ENOUGH_TURNS,
) -> None:
    """Until every stage has had enough turns, or the time is up."""
    engine.fix_batches(sizes)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
        for name, state in engine.pipelines.items():
            if state == "failed":
                raise engine.error(name) or PenstockError(f"pipeline {name!r} failed")
        taken = [record.stage for record in tuple(records) if record.rows_in >= sizes[record.stage]]
        if all(taken.count(stage) >= turns for stage in sizes):
            return


def costs_of(records: Sequence[TurnRecord], size: int) -> list[BatchCost]:
    """The median of the turns that had about that size, for each stage."""
    by_stage: dict[str, list[float]] = {}
    for record in records:
        if 0.5 * size <= record.rows_in <= 1.5 * size:
            by_stage.setdefault(record.stage, []).append(record.turn_seconds)
    return [
        BatchCost(stage, size, len(seconds), median(seconds))
        for stage, seconds in by_stage.items()
        if len(seconds) >= 2
    ]
