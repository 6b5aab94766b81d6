"""Partitions that are uneven and become more while they are read: no group shares them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.spark.conftest import EngineFactory, eventually
from tests.spark.kafka.topics import Topic
from tests.spark.streams import Kept, Turns

from penstock import Pipeline, sources

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def names(first: int, last: int) -> list[str]:
    return [f"{number:05d}" for number in range(first, last)]


def on_two_slots(topic: Topic, kept: Kept) -> Pipeline:
    pipeline = Pipeline("p")
    source = pipeline.source("records", sources.Kafka(topic.servers, topic.name))
    read = source.operator(
        "read", lambda rows: rows.selectExpr("cast(value as string) as text", "partition"), parallelism=2
    )
    read.sink("out", kept.sink, latency="1s")
    return pipeline


def test_every_record_comes_once_from_uneven_partitions_that_become_more_meanwhile(
    engine: EngineFactory, topic: Callable[..., Topic]
) -> None:
    made, kept = topic(3), Kept()
    made.write(names(0, 2500), partition=0)
    made.write(names(2500, 2600), partition=1)  # the third has none
    runs = engine(consumption="at-most-40")
    running = runs.submit(on_two_slots(made, kept))
    eventually(lambda: len(kept.rows) > 0)
    made.grow(6)
    assert running.rows_waiting > 0  # they are added in the middle of the work
    made.write(names(2600, 3200), partition=5)
    made.write(names(3200, 3260))
    runs.reschedule(consumption="all")
    runs.drain()
    assert kept.column("text") == names(0, 3260)
    counts = Counter(kept.column("partition"))
    assert counts == {0: 2510, 1: 110, 2: 10, 3: 10, 4: 10, 5: 610}
    assert runs.slots == {"p.read": 2}


def test_the_planner_sees_a_topic_and_turns_over_it_follow_the_plan_without_a_restart(
    engine: EngineFactory, topic: Callable[..., Topic]
) -> None:
    made, kept, turns = topic(2), Kept(), Turns()
    runs = engine(consumption="planned", planning="1h")
    running = runs.submit(on_two_slots(made, kept))
    planner = runs.planner
    assert planner is not None
    # Costs count after some turns.
    for start in range(0, 300, 50):
        made.write(names(start, start + 50))
        runs.drain()
    eventually(lambda: planner.plan is not None and "p.read" in planner.plan.rows)
    assert planner.plan is not None
    assert planner.plan.rates["p.read"] > 0
    runs.pause("p")
    made.write(names(300, 790))
    eventually(lambda: running.rows_waiting == 490)
    runs.fix_batches({"p.read": 70})
    runs.on_turn(turns)
    runs.resume("p")
    runs.drain()
    assert kept.column("text") == names(0, 790)
    assert [record.rows_in for record in turns.of("p.read")] == [70] * 7
