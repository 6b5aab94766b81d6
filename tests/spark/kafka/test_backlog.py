"""A query of the user's own over Kafka: its backlog is known from offsets, and it is held."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import EngineFactory, eventually
from tests.spark.kafka.topics import Topic
from tests.spark.streams import Kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_an_adopted_query_is_held_and_its_backlog_is_seen(
    engine: EngineFactory, spark: SparkSession, topic: Callable[..., Topic]
) -> None:
    made, kept, runs = topic(2), Kept(), engine()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", made.servers)
    frame = reader.option("subscribe", made.name).option("startingOffsets", "earliest").load()
    made.write(str(number) for number in range(50))
    runs.start(frame.selectExpr("cast(value as string) as text"), kept.sink, name="own")
    eventually(lambda: len(kept.rows) == 50)
    runs.pause("own")
    made.write(str(number) for number in range(50, 90))
    stage = runs._pipelines["own"].stages[0]
    eventually(lambda: stage._query.holds)
    stage._backlog.look()
    assert stage._backlog.waiting(0.0).rows == 40
    runs.resume("own")
    eventually(lambda: len(kept.rows) == 90)
    assert sorted(map(int, kept.column("text"))) == list(range(90))
