"""The driver is killed in a turn over Kafka, and another goes on: the spool holds all rows once."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.connect.drivers import Drivers
from penstock.bench.connect.found_rows import put_losses
from penstock.bench.connect.kafka import sent_over_blows
from penstock.bench.connect.ordeal import Ordeal
from penstock.bench.result import BenchResult
from penstock.workloads.kafka_broker import KafkaBroker


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_a_restarted_broker_and_a_killed_driver_cost_no_record_and_double_none(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    ordeal = Ordeal("kafka", broker.servers, tmp_path, lambda text: None, rows=2000)
    result = BenchResult("connect")
    with Drivers() as drivers:
        first, second = drivers.take(2)
        sent = sent_over_blows(ordeal, broker, (first, second), lot=1000)
    put_losses(result, "kafka", tmp_path, sent)
    assert result.figures == {"kafka_lost": 0, "kafka_doubled": 0}
    for blow in ("broker restarted", "driver killed"):
        assert ordeal.blows[blow]["in_turn"] == ["kafka.ids"]
    done = [blow["rows_in_spool"] for blow in ordeal.blows.values()]
    assert 0 < done[0] < done[1] < done[2] <= sent
