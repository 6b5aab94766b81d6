"""Planned batches on a running engine: nothing is lost or repeated when a plan changes, and each says why."""

from __future__ import annotations

import json

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import AGGREGATES, Kept, Turns, Windows, from_spool, readings, table, window_rows

from penstock import Engine, Pipeline, Spool
from penstock.errors import PenstockError
from penstock.plan.triggers import EveryProduct

pytestmark = pytest.mark.spark
ROWS = readings(3000, seconds=60)


def two_products(source: Spool, quick: Kept, slow: Kept) -> Pipeline:
    pipeline = Pipeline("p", fuse=False)
    read = pipeline.source("readings", from_spool(source)).operator("read", lambda rows: rows)
    read.operator("alert", lambda rows: rows.select("id")).sink("alerts", quick.sink, latency="500ms")
    read.operator("keep", lambda rows: rows.select("id")).sink("kept", slow.sink, latency="30s")
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
    runs.submit(two_products(source, quick, slow))
    planner = runs.planner
    assert planner is not None
    assert planner.trigger == EveryProduct()
    for start in range(0, 450, 30):
        source.append(table(ROWS[start : start + 30]))
        runs.drain()
    assert planner.made > 5


def test_planning_that_is_none_is_refused(engine: EngineFactory) -> None:
    with pytest.raises(PenstockError, match="planning must be 'conditional', 'product' or a period"):
        engine(policy="batchit", planning="never")
