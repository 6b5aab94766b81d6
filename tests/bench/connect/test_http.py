"""The part http of `bench connect`, small: a real receiver, and lives of a real pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.bench.connect.found_rows import put_losses
from penstock.bench.connect.http import Senders, Size, body, rate
from penstock.bench.connect.lives import Lives
from penstock.bench.result import BenchResult
from penstock.workloads.mosquitto import free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_rate_counts_rows_that_are_durable() -> None:
    said: list[str] = []
    assert rate(said.append, Size(requests=4, rows=50, rounds=1), 0) > 0
    assert said == ["round 1: 4 requests of 50 rows"]


@pytest.mark.spark
def test_one_life_goes_on_where_another_ended_while_senders_send(spark: SparkSession, tmp_path: Path) -> None:
    port = free_port()
    senders = Senders(port, lambda request: body(request, 100))
    first, second = Lives(spark), Lives(spark)
    first.live("http", str(port), str(tmp_path))
    senders.start()
    blow = first.busy(500)
    assert blow["rows_in_spool"] >= 500
    assert blow["in_turn"] == ["http.ids"]
    first.end()
    second.live("http", str(port), str(tmp_path))
    second.busy(500)
    sent = senders.end() * 100
    assert second.complete(sent) == sent
    second.rest()
    result = BenchResult("connect")
    put_losses(result, "http", tmp_path, sent)
    assert result.figures == {"http_lost": 0, "http_doubled": 0}
