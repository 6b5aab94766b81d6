"""What an engine measures and learns while it runs, and how it may be told to schedule otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, from_spool, readings, table

from penstock import Pipeline, Spool
from penstock.measure.minutes import StageMinute
from penstock.scheduling import Grant, UnknownPolicy

pytestmark = pytest.mark.spark
ROWS = readings(200, seconds=60)


def three_stages(source: Spool, kept: Kept) -> Pipeline:
    pipeline = Pipeline("p")
    rows = pipeline.source("readings", from_spool(source))
    rows = rows.operator("even", lambda frame: frame.filter("id % 2 = 0"), fuse=False)
    rows = rows.operator("thrice", lambda frame: frame.unionAll(frame).unionAll(frame), fuse=False)
    rows.operator("last", lambda frame: frame, fuse=False).sink("out", kept.sink)
    return pipeline


def test_congestion_tells_the_shares_and_rates_of_each_stage(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, runs = spool(), engine()
    runs.submit(three_stages(source, Kept()))
    assert runs.congestion()["p"].highest_rows_per_second is None
    for _ in range(3):
        source.append(table(ROWS))
        runs.drain()
    told = runs.congestion()["p"]
    even, thrice, last = told.stages
    assert (even.stage, even.relative_input, even.relative_service) == ("p.even", 1.0, pytest.approx(1.0))
    assert (thrice.relative_input, last.relative_input) == pytest.approx((0.5, 1.5), rel=0.1)
    assert 0.0 < sum(each.weight for each in told.stages) <= 2.0
    assert told.highest_rows_per_second is not None
    assert told.highest_rows_per_second > 0.0
    assert told.weight_cv is not None
    [report] = [each for each in runs.stages() if each.stage == "p.even"]
    assert report.figures.slot_seconds > 0.0
    assert 0.0 < runs.scheduler_seconds < 5.0


def test_views_carry_what_was_learned_of_their_stage(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, runs = spool(), engine(policy="min-memory")
    running = runs.submit(three_stages(source, Kept()))
    for _ in range(3):
        source.append(table(ROWS))
        runs.drain()
    stages = {stage.name: stage for stage in running.stages}

    def steepness(name: str) -> float:
        return stages[name].base_view(1, 0.0, 0.0).steepness or 0.0

    eventually(lambda: all(steepness(name) > 0.0 for name in stages), 10)
    views = {name: stage.base_view(1, 0.0, 0.0) for name, stage in stages.items()}
    assert [views[f"p.{name}"].depth for name in ("even", "thrice", "last")] == [2, 1, 0]
    assert views["p.even"].selectivity == pytest.approx(0.5)
    assert views["p.thrice"].selectivity == pytest.approx(3.0)
    assert all(view.seconds_per_row > 0.0 for view in views.values())
    reasons = [each.reason for each in runs.decisions() if isinstance(each, Grant)]
    assert reasons[0].startswith("its reduction is not known yet")


@pytest.mark.parametrize("policy", ["random", "min-latency", "min-memory"])
def test_all_rows_come_out_under_every_policy(
    engine: EngineFactory, spool: SpoolFactory, policy: str
) -> None:
    source, runs, kept = spool(), engine(policy=policy, consumption="at-most-50"), Kept()
    runs.submit(three_stages(source, kept))
    source.append(table(ROWS))
    runs.drain()
    assert kept.column("id") == sorted([2 * number for number in range(100)] * 3)


def test_policy_and_consumption_can_be_changed_while_running(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, runs, kept = spool(), engine(policy="fifo"), Kept()
    runs.submit(three_stages(source, kept))
    source.append(table(ROWS[:100]))
    runs.drain()
    runs.reschedule(policy="longest-queue", consumption="at-most-40")
    source.append(table(ROWS[100:]))
    runs.drain()
    grants = [each for each in runs.decisions("p.even") if isinstance(each, Grant)]
    assert [each.rows for each in grants] == [100, 40, 40, 20]
    assert [each.reason.split(":")[0] for each in grants] == ["waited longest", *["longest queue"] * 3]
    runs.reschedule(consumption="half")
    with pytest.raises(UnknownPolicy):
        runs.reschedule(policy="lifo")


def test_the_last_minute_is_kept_at_the_stop(engine: EngineFactory, spool: SpoolFactory, state: Path) -> None:
    source, runs = spool(), engine()
    runs.submit(three_stages(source, Kept()))
    source.append(table(ROWS))
    runs.drain()
    runs.stop()
    lines = (state / "minutes.jsonl").read_text().splitlines()
    minutes = [StageMinute.from_json(json.loads(line)) for line in lines]
    assert {each.stage for each in minutes} == {"p.even", "p.thrice", "p.last"}
    assert sum(each.figures.rows_in for each in minutes if each.stage == "p.last") == 300
    assert all(each.pool_slots == 2 for each in minutes)
