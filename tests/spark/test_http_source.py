"""A pipeline fed over HTTP."""

from __future__ import annotations

import urllib.request
from typing import Any

import pytest
from tests.spark.conftest import EngineFactory, eventually
from tests.spark.streams import Kept

from penstock import Engine, Pipeline, sources
from penstock.errors import PenstockError
from penstock.ingest.http import HttpFeeder
from penstock.workloads.mosquitto import free_port

pytestmark = pytest.mark.spark


def listening(port: int, kept: Kept, name: str = "p") -> Pipeline:
    pipeline = Pipeline(name)
    rows = pipeline.source("rows", sources.Http(port, "id LONG NOT NULL, at TIMESTAMP"))
    rows.operator("twice", lambda frame: frame.selectExpr("2 * id as id", "year(at) as year")).sink(
        "out", kept.sink
    )
    return pipeline


def post(runs: Engine, body: str) -> bytes:
    [feeder] = runs._running("p").feeders
    assert isinstance(feeder, HttpFeeder)
    host, port = feeder.address
    reply: Any = urllib.request.urlopen(f"http://{host}:{port}/", body.encode(), timeout=30)
    return bytes(reply.read())


def test_rows_sent_over_http_run_through_a_pipeline_and_its_port_is_its_own(engine: EngineFactory) -> None:
    kept, runs, port = Kept(), engine(), free_port()
    runs.submit(listening(port, kept))
    assert (
        post(runs, '{"id": 1, "at": "2026-05-05T00:00:00Z"}\n{"id": 2}')
        == b'{"rows": 2, "repeated": false}\n'
    )
    eventually(lambda: len(kept.rows) == 2)
    assert sorted((row["id"], row["year"]) for row in kept.rows if row["year"]) == [(2, 2026)]
    with pytest.raises(PenstockError, match=f"^HTTP must listen on 127.0.0.1:{port}, but cannot"):
        runs.submit(listening(port, Kept(), "q"))
    runs.cancel("p")
    runs.submit(listening(port, kept))
    post(runs, '{"id": 3}')
    eventually(lambda: sorted(row["id"] for row in kept.rows) == [2, 4, 6])
