"""Two applications on one cluster, each on the workers of its region, joined by a topic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.kafka.region_driver import LIMIT_SECONDS, ROWS

from penstock.bench.crash import Life
from penstock.spark.cluster.standalone import StandaloneCluster, WorkerSize
from penstock.workloads.kafka_broker import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    running = StandaloneCluster(tmp_path / "cluster")
    try:
        running.up([WorkerSize(memory="512m", region=region) for region in ("east", "west")])
        yield running
    finally:
        running.down()


def test_each_application_runs_on_its_region_and_every_row_crosses_once(
    cluster: StandaloneCluster, broker: KafkaBroker, tmp_path: Path
) -> None:
    lives = []
    try:
        for region in ("east", "west"):
            (tmp_path / region).mkdir()
            lives.append(
                Life(
                    tmp_path / region,
                    (region, cluster.url, broker.servers),
                    "tests.spark.kafka.region_driver",
                )
            )
        assert [life.until("on", LIMIT_SECONDS) for life in lives] == ["on east", "on west"]
        for life in lives:
            life.until("done", LIMIT_SECONDS)
    finally:
        for life in lives:
            life.end()
    lines = [
        json.loads(line)
        for file in (tmp_path / "west" / "kept").rglob("*.json*")
        for line in file.read_text().splitlines()
    ]
    assert sorted((line["id"], line["twice"]) for line in lines) == [(n, 2 * n) for n in range(ROWS)]
