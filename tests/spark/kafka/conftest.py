"""One broker for all tests of Kafka; engines and spools as everywhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from tests.spark.conftest import engine, spool, state
from tests.spark.kafka.topics import Topic

from penstock.workloads.kafka_broker import KafkaBroker

__all__ = ["broker", "engine", "spool", "state", "topic"]


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as started:
        yield started


_numbers = itertools.count(1)


@pytest.fixture
def topic(spark: object, broker: KafkaBroker) -> Callable[..., Topic]:
    """Makes a topic of a name that no other test has."""

    def make(partitions: int = 2, **settings: str) -> Topic:
        made = Topic(spark, broker.servers, f"topic-{next(_numbers)}")
        made.make(partitions, settings)
        return made

    return make
