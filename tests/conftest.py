"""The one Spark session of a test run: the JVM takes its class path from whoever starts it first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes is no test's to say: machines have other things to do.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")

# A JVM of a test lives for minutes at the most: on two cores its second compiler takes more than it gives.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kafka", action="store_true", help="the tests that need Kafka's jars, and no others")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of Kafka run apart: their jars come from Maven, and must be there when the JVM starts."""
    wanted = config.getoption("--kafka")
    other = [item for item in items if (item.get_closest_marker("kafka") is not None) != wanted]
    if other:
        config.hook.pytest_deselected(items=other)
        items[:] = [item for item in items if item not in set(other)]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from penstock.spark.session import build_session

    session = build_session(cores=2)
    yield session
    session.stop()
