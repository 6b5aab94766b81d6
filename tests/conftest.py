"""The one Spark session of a test run: the JVM takes its class path from whoever starts it first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes is no test's to say: machines have other things to do.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from penstock.spark.session import build_session

    session = build_session(cores=2)
    yield session
    session.stop()
