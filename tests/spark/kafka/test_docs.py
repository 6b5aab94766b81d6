"""The code of docs/kafka.md runs as it stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import eventually
from tests.spark.kafka.topics import Topic

import penstock
from penstock import Engine
from penstock.workloads.kafka_broker import KafkaBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
DOCS = Path(__file__).resolve().parents[3] / "docs" / "kafka.md"


def test_every_block_of_the_guide_runs(
    spark: SparkSession,
    broker: KafkaBroker,
    topic: Callable[..., Topic],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders, large = Topic(spark, broker.servers, "orders"), Topic(spark, broker.servers, "large-orders")
    for each in (orders, large):
        each.make(2)
    orders.write(f'{{"id": {number}, "euros": {number * 10}}}' for number in range(20))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(penstock, "Engine", partial(Engine, spark))
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) == 4

    def wait_for_rows(said: str) -> None:
        eventually(lambda: Path("own-orders").exists() and pq.read_table("own-orders").num_rows == 20)

    names: dict[str, Any] = {"input": wait_for_rows}
    for block in blocks:
        exec(block.replace("127.0.0.1:9092", broker.servers), names)
    assert pq.read_table("own-orders").num_rows == 20
    assert sorted(pq.read_table("archive")["id"].to_pylist()) == list(range(11, 20))
    assert sorted(bytes(row["key"]).decode() for row in large.read()) == sorted(map(str, range(11, 20)))
