"""Planned batches on a running engine: nothing is lost or repeated when a plan changes, and each says why."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import AGGREGATES, Kept, Turns, Windows, from_spool, readings, table, window_rows

from penstock import Engine, Pipeline, Spool
from penstock.errors import PenstockError
from penstock.plan.triggers import EveryProduct
from penstock.scheduling.decisions import Hold

pytestmark = pytest.mark.spark
ROWS = readings(3000, seconds=60)


ONCE = {"function": lambda rows: rows.dropDuplicates(["id"]).select("id"), "stateful": True}


def two_products(source: Spool, quick: Kept, slow: Kept, keep: Mapping[str, Any] | None = None) -> Pipeline:
    pipeline = Pipeline("p", fuse=False)
    read = pipeline.source("readings", from_spool(source)).operator("read", lambda rows: rows)
    read.operator("alert", lambda rows: rows.select("id")).sink("alerts", quick.sink, latency="500ms")
    settings = keep or {"function": lambda rows: rows.select("id")}
    read.operator("keep", **settings).sink("kept", slow.sink, latency="30s")
    return pipeline


def test_a_plan_is_made_from_what_was_measured_and_put_in_force(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, quick, slow, turns = spool(), Kept(), Kept(), Turns()
    runs: Engine = engine(policy="batchit")
    runs.submit(two_products(source, quick, slow))
    runs.on_turn(turns)
    planner = runs.planner
    assert planner is not None
    # Costs count after some turns.
    for start in range(0, 1500, 250):
        source.append(table(ROWS[start : start + 250]))
        runs.drain()
    eventually(lambda: planner.plan is not None and len(planner.plan.rows) == 3)
    for start in range(1500, 3000, 30):
        source.append(table(ROWS[start : start + 30]))
    runs.drain()
    assert quick.column("id") == list(range(3000))
    assert slow.column("id") == list(range(3000))
    plan = planner.plan
    assert plan is not None
    assert set(plan.delays) == {"p.alerts", "p.kept"}
    assert plan.rates["p.keep"] == pytest.approx(plan.rates["p.read"], rel=0.01)
    stored = [json.loads(line) for line in (runs.state / "plans.jsonl").read_text().splitlines()]
    assert stored[0]["reason"] == "the first plan"
    assert len(stored) == len(planner.changes) == planner.made
    assert 0.0 < planner.planning_seconds < 5.0


def test_turns_take_the_planned_rows_also_under_another_policy(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, quick, slow, turns = spool(), Kept(), Kept(), Turns()
    runs: Engine = engine(policy="llf", consumption="planned", planning="1h")
    runs.submit(two_products(source, quick, slow))
    planner = runs.planner
    assert planner is not None
    for start in range(0, 12, 2):
        source.append(table(ROWS[start : start + 2]))
        runs.drain()
    eventually(lambda: planner.plan is not None and len(planner.plan.rows) == 3)
    runs.pause("p")
    for start in range(12, 502, 49):
        source.append(table(ROWS[start : start + 49]))
    # The planner's own plan is not due for an hour.
    runs.fix_batches({"p.read": 70, "p.alert": 40})
    runs.on_turn(turns)
    runs.resume("p")
    runs.drain()
    assert quick.column("id") == slow.column("id") == list(range(502))
    # Laxity may cut a turn further.
    assert max(record.rows_in for record in turns.of("p.read")) == 70
    assert max(record.rows_in for record in turns.of("p.alert")) <= 40
    assert sum(record.rows_in for record in turns.of("p.keep")) == 490


def test_windows_come_out_right_with_planned_batches(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept = spool(), Kept()
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream.window("count", on="ts", size="5s", by="sensor", aggregate=AGGREGATES).sink(
        "out", kept.sink, latency="2s"
    )
    runs: Engine = engine(policy="batchit", planning="1s")
    runs.submit(pipeline)
    for start in range(0, 3000, 100):
        source.append(table(ROWS[start : start + 100]))
    runs.drain()
    assert window_rows(kept.rows) == Windows(size=5).expected(ROWS)


def test_after_every_product_a_plan_is_made(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, quick, slow = spool(), Kept(), Kept()
    runs: Engine = engine(policy="batchit", planning="product")
    runs.submit(two_products(source, quick, slow, keep=ONCE))
    planner = runs.planner
    assert planner is not None
    assert planner.trigger == EveryProduct()
    for start in range(0, 450, 30):
        source.append(table(ROWS[start : start + 30]))
        runs.drain()
    assert planner.made > 5
    assert quick.column("id") == slow.column("id") == list(range(450))
    # What a first turn takes longer, to load state, is told of stages with state alone.
    other = runs.profile("p.alert")
    assert other is not None
    assert other.state_seconds == 0.0


def test_overload_is_told_and_what_memory_has_no_room_for_waits_in_the_spool(
    engine: EngineFactory, spool: SpoolFactory, caplog: pytest.LogCaptureFixture
) -> None:
    source, kept, turns = spool(), Kept(), Turns()
    pipeline = Pipeline("p")
    keep = pipeline.source("readings", from_spool(source)).operator("keep", lambda rows: rows.select("id"))
    keep.sink("kept", kept.sink, latency="30s")
    runs: Engine = engine(policy="batchit", plan_rows=20)
    running = runs.submit(pipeline)
    planner = runs.planner
    assert planner is not None
    for start in range(0, 60, 10):
        source.append(table(ROWS[start : start + 10]))
        runs.drain()
    eventually(lambda: planner.plan is not None)
    runs.on_turn(turns)
    more = 20_000
    with caplog.at_level(logging.WARNING, "penstock"):
        source.append(table([{**ROWS[0], "id": 60 + each} for each in range(more)]))
        eventually(lambda: "no plan holds: " in caplog.text)
        eventually(lambda: len(turns.of("p.keep")) > 10)
    assert running.rows_waiting > more / 2
    assert planner.plan is not None
    assert not planner.plan.holds
    assert sum(planner.plan.rows.values()) <= 20
    assert max(record.rows_in for record in turns.of("p.keep")) <= 20
    runs.reschedule(consumption="all")
    runs.drain()
    assert kept.column("id") == list(range(60 + more))


def test_a_declared_block_is_waited_for_and_taken_whole(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, turns = spool(), Kept(), Turns()
    pipeline = Pipeline("p")
    read = pipeline.source("readings", from_spool(source)).operator("read", lambda rows: rows.select("id"))
    read.operator("pack", lambda rows: rows, block=15).sink("out", kept.sink, latency="1s")
    runs: Engine = engine(policy="batchit")
    runs.submit(pipeline)
    runs.on_turn(turns)
    source.append(table(ROWS[:10]))
    eventually(lambda: any(each.until > each.at + 10.0 for each in holds(runs, "p.pack")))
    source.append(table(ROWS[10:15]))
    eventually(lambda: len(kept.rows) == 15)
    eventually(lambda: turns.of("p.pack"))
    assert [record.rows_in for record in turns.of("p.pack")] == [15]
    source.append(table(ROWS[15:18]))
    runs.drain()
    assert [record.rows_in for record in turns.of("p.pack")] == [15, 3]
    assert kept.column("id") == list(range(18))


def holds(engine: Engine, stage: str) -> list[Hold]:
    return [each for each in engine.decisions(stage) if isinstance(each, Hold)]


def test_planning_that_is_none_is_refused(engine: EngineFactory) -> None:
    with pytest.raises(PenstockError, match="planning must be 'conditional', 'product', 'tuned' or a period"):
        engine(policy="batchit", planning="never")
