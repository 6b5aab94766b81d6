from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import (
    AGGREGATES,
    Kept,
    Turns,
    Windows,
    cuts,
    from_spool,
    reading,
    readings,
    table,
    window_rows,
)

from penstock import Pipeline, Spool
from penstock.errors import PenstockError
from penstock.operators.scan import Recurrence, scan
from penstock.spark.checkpoint import StateNotDivisible

pytestmark = pytest.mark.spark
WINDOWS = Windows(2)
# In order, and a last one that closes the windows of all others.
ROWS = [*readings(600, seconds=60), reading(600, 1000.0)]


def numbered(rows: Any) -> Any:
    """How many rows of its sensor came before each, itself counted: state by key."""
    count = Recurrence({"n": 0}, lambda state, row: {"n": state.n + 1}, lambda state, row: {"n": state.n})
    return scan(rows.select("id", "sensor"), count, by="sensor", order="id")


def pipeline_over(source: Spool, kept: Kept, counts: Kept, tasks: Kept) -> Pipeline:
    """Windows, running counts, and rows with the task they were in."""
    pipeline = Pipeline("p")
    read = pipeline.source("readings", from_spool(source))
    read.window("w", on="ts", size=float(WINDOWS.size), by="sensor", aggregate=AGGREGATES).sink(
        "windows", kept.sink
    )
    read.operator("numbered", numbered, stateful=True).sink("counts", counts.sink)
    read.operator("tasks", lambda rows: rows.selectExpr("id", "spark_partition_id() as task")).sink(
        "each", tasks.sink
    )
    return pipeline


def numbers_of(rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in sorted(rows, key=lambda row: (row["sensor"], row["n"])):
        found.setdefault(row["sensor"], []).append(row["n"])
    return found


def test_slots_change_under_load_and_no_row_is_lost_or_doubled(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, windows, counts, tasks, turns = spool(), Kept(), Kept(), Kept(), Turns()
    runs = engine(state_store="rocksdb")
    runs.on_turn(turns)
    runs.submit(pipeline_over(source, windows, counts, tasks))
    segments = list(cuts(ROWS, seed=3))
    third = len(segments) // 3
    stages = ("p.w", "p.numbered", "p.tasks")
    changes = []
    for part, slots in enumerate((2, 1, 2)):
        end = len(segments) if part == 2 else (part + 1) * third
        for segment in segments[part * third : end]:
            source.append(segment)
        before = {stage: len(turns.of(stage)) for stage in stages}
        eventually(lambda before=before: all(len(turns.of(each)) > before[each] for each in stages), 60.0)
        changes += runs.set_slots(dict.fromkeys(stages, slots))
    assert runs.slots == dict.fromkeys(stages, 2)
    source.append(table([reading(601, 1004.0)]))
    runs.drain(120.0)
    everything = [*ROWS, reading(601, 1004.0)]
    assert window_rows(windows.rows) == WINDOWS.expected(everything)
    assert tasks.column("id") == list(range(602))
    expected = {name: sum(row["sensor"] == name for row in everything) for name in "abc"}
    assert numbers_of(counts.rows) == {name: list(range(1, count + 1)) for name, count in expected.items()}
    assert {record.slots for record in turns.of("p.tasks")} == {1, 2}
    assert [(each.stage, each.before, each.after, each.way) for each in changes[:3]] == [
        ("p.w", 1, 2, "restarted"),
        ("p.numbered", 1, 2, "restarted"),
        ("p.tasks", 1, 2, "next turn"),
    ]
    assert len(changes) == 9
    assert all(each.pause_seconds > 0.0 for each in changes if each.way == "restarted")
    lines = [json.loads(line) for line in (state / "slots.jsonl").read_text().splitlines()]
    assert lines == [each.to_json() for each in changes]


def test_state_on_the_heap_is_not_divided_and_goes_on_as_it_is(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, windows, counts, tasks, runs = spool(), Kept(), Kept(), Kept(), engine()
    runs.submit(pipeline_over(source, windows, counts, tasks))
    source.append(table(ROWS[:300]))
    runs.drain()
    with pytest.raises(StateNotDivisible) as refused:
        runs.set_slots({"p.w": 2})
    assert str(refused.value) == (
        "the state of stage 'p.w' must lie in RocksDB for its slots to change, but is on the heap: "
        "nothing was changed; begin the pipeline's state anew with Engine(state_store='rocksdb')"
    )
    source.append(table(ROWS[300:]))
    runs.drain()
    assert window_rows(windows.rows) == WINDOWS.expected(ROWS)


def test_unknown_stages_and_slots_that_the_pool_has_not_are_refused_before_anything_changes(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, runs = spool(), engine()
    runs.submit(pipeline_over(source, Kept(), Kept(), Kept()))
    with pytest.raises(PenstockError) as unknown:
        runs.set_slots({"p.tasks": 2, "p.none": 1})
    assert str(unknown.value) == (
        "slots must be for a stage that runs, got 'p.none', of: p.numbered, p.tasks, p.w"
    )
    with pytest.raises(PenstockError) as too_many:
        runs.set_slots({"p.tasks": 2, "p.w": 3})
    assert str(too_many.value) == (
        "slots of stage 'p.w' must be a whole number from 1 to 2, the slots of the pool, got 3: "
        "nothing was changed"
    )
    assert runs.slots == {"p.w": 1, "p.numbered": 1, "p.tasks": 1}
