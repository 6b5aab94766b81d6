"""The driver that is killed: a pipeline from MQTT or HTTP to Parquet files, whose state stays."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.bench.workers import serve
from penstock.ingest.mqtt import MqttFeeder
from penstock.pipeline import sinks, sources
from penstock.pipeline.pipeline import Pipeline
from penstock.spark.engine import Engine
from penstock.spark.feeders import wait_for

TOPIC = "bench/rows"
SCHEMA = "id LONG NOT NULL"
SLOTS = 2
READY_SECONDS = 60.0
DRAIN_SECONDS = 300.0


def ingest_pipeline(kind: str, port: int, out: Path) -> Pipeline:
    """Rows with an id, as they come, into files."""
    pipeline = Pipeline("ingest")
    if kind == "http":
        rows = pipeline.source("rows", sources.Http(port, SCHEMA))
        rows = rows.operator("same", lambda frame: frame.select("id"))
    else:
        messages = pipeline.source("rows", sources.Mqtt("127.0.0.1", TOPIC, port))
        rows = messages.parse("parse", SCHEMA)
    rows.sink("found", sinks.Parquet(out))
    return pipeline


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--port", type=int, required=True)
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    with Engine(state=args.folder / "state", slots=SLOTS) as engine:
        running = engine.submit(ingest_pipeline(args.kind, args.port, args.folder / "found"))
        [feeder] = running.feeders
        wait_for(lambda: not isinstance(feeder, MqttFeeder) or feeder.connected, READY_SECONDS)

        def answer(request: Mapping[str, Any]) -> Any:
            engine.drain(DRAIN_SECONDS)
            return "drained"

        serve("ready", answer)


if __name__ == "__main__":
    main()
