from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, Turns, from_spool, reading, readings, table

from penstock import Engine, Pipeline, Spool, sinks
from penstock.scheduling.decisions import Grant

pytestmark = pytest.mark.spark
ROWS = readings(230, seconds=30)


def passing(name: str, source: Spool, kept: Kept) -> Pipeline:
    pipeline = Pipeline(name)
    stream = pipeline.source("readings", from_spool(source))
    stream.operator("pass", lambda frame: frame.select("id")).sink("out", kept.sink)
    return pipeline


@pytest.mark.parametrize("policy", ["fifo", "longest-queue"])
def test_no_turn_takes_more_rows_than_it_may_and_all_rows_arrive(
    engine: EngineFactory, spool: SpoolFactory, policy: str
) -> None:
    source, kept, turns = spool(), Kept(), Turns()
    runs = engine(policy=policy, consumption="at-most-40")
    runs.submit(passing("p", source, kept))
    runs.on_turn(turns)
    for start in range(0, 230, 23):
        source.append(table(ROWS[start : start + 23]))
    runs.drain()
    taken = [record.rows_in for record in turns.of("p.pass")]
    assert max(taken) <= 40
    assert sum(taken) == 230
    assert [len(turn) for turn in kept.turns] == taken
    # Turn after turn in order of arrival, each row once, though segments of 23 rows are cut into 40.
    in_turns = [sorted(row["id"] for row in turn) for turn in kept.turns]
    assert [id for turn in in_turns for id in turn] == [row["id"] for row in ROWS]


def test_half_of_what_waits_is_taken_until_nothing_waits(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, turns, runs = spool(), Kept(), Turns(), engine(consumption="half")
    runs.submit(passing("p", source, kept))
    runs.on_turn(turns)
    source.append(table(ROWS[:100]))
    runs.drain()
    taken = [record.rows_in for record in turns.of("p.pass")]
    assert taken[:3] == [50, 25, 13]
    assert sum(taken) == 100
    assert kept.column("id") == list(range(100))


@pytest.mark.parametrize(("policy", "first"), [("fifo", "short.pass"), ("longest-queue", "long.pass")])
def test_the_policy_decides_who_gets_the_slot_that_two_wait_for(
    engine: EngineFactory, spool: SpoolFactory, policy: str, first: str
) -> None:
    blocking, short, long = spool("blocking"), spool("short"), spool("long")
    go, runs = threading.Event(), engine(policy=policy, slots=1)
    pipeline = Pipeline("blocker")
    blocked = sinks.Callback(lambda rows, batch: _wait(go))
    pipeline.source("readings", from_spool(blocking)).sink("out", blocked)
    runs.submit(pipeline)
    for name, source in (("short", short), ("long", long)):
        runs.submit(passing(name, source, Kept()))
    blocking.append(table(ROWS[:1]))
    eventually(lambda: bool(_granted(runs)))
    short.append(table(ROWS[:5]))
    long.append(table(ROWS))
    go.set()
    runs.drain()
    second = "long.pass" if first == "short.pass" else "short.pass"
    assert _granted(runs) == ["blocker.out", first, second]


def _wait(go: threading.Event) -> None:
    assert go.wait(60)


def _granted(runs: Engine) -> list[str]:
    return [each.stage for each in runs.decisions() if isinstance(each, Grant)]


def test_every_grant_has_a_reason(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, kept, runs = spool(), Kept(), engine(consumption="at-most-100")
    runs.submit(passing("p", source, kept))
    source.append(table(ROWS))
    runs.drain()
    grants = [each for each in runs.decisions("p.pass") if isinstance(each, Grant)]
    assert [grant.rows for grant in grants] == [100, 100, 30]
    assert all(grant.reason and grant.slots == 1 for grant in grants)


def test_a_stage_whose_queue_is_full_waits_until_its_reader_has_caught_up(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, go, got = spool(), threading.Event(), Kept()
    runs = engine(consumption="at-most-10", queue_limit_bytes=1)

    def slowly(rows: pa.Table, batch: int) -> None:
        _wait(go)
        got(rows, batch)

    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source)).operator("fast", lambda frame: frame).queue()
    stream.operator("slow", lambda frame: frame.select("id")).sink("out", sinks.Callback(slowly))
    runs.submit(pipeline)
    source.append(table(ROWS[:50]))
    eventually(lambda: _granted(runs)[:2] == ["p.fast", "p.slow"])
    # One turn's rows are with the reader; until it lets them go there is no room for another's.
    assert _granted(runs).count("p.fast") == 1
    go.set()
    runs.drain()
    assert got.column("id") == list(range(50))
    assert _granted(runs) == ["p.fast", "p.slow"] * 5


def test_a_full_queue_before_a_stage_with_state_is_emptied_turn_by_turn(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    # A held stage keeps the files of its last turn: they must not count as taking up room.
    source, got, runs = spool(), Kept(), engine(consumption="at-most-50", queue_limit_bytes=1)
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source)).operator("fast", lambda frame: frame).queue()
    counted = stream.window("per second", on="ts", size="1s", aggregate="count(*) as n")
    counted.sink("out", got.sink)
    runs.submit(pipeline)
    rows = [reading(id, id / 50) for id in range(200)]
    source.append(table([*rows, reading(200, 1000.0)]))
    runs.drain()
    assert sorted(got.column("n")) == [50, 50, 50, 50]
