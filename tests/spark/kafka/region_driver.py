"""The driver of one region: an application of its own, on the workers of that region alone.

`east` hands rows to a topic, `west` reads them there. Their lines: `on REGION...`, whose executors they
have; `done`, when all rows that are asked for are through.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa

from penstock import Engine, Pipeline, sinks, sources
from penstock.bench.crash_worker import say
from penstock.spark.feeders import wait_for
from penstock.spark.session import build_session

LIMIT_SECONDS = 120.0
TOPIC = "rows-of-east"
ROWS = 2000


def main(folder: Path, region: str, master: str, servers: str) -> None:
    os.chdir(folder)
    memory = {"spark.executor.memory": "512m"}
    session = build_session(master=master, region=region, state=folder / "state", settings=memory)
    with Engine(session, state=folder / "state") as engine:
        engine.submit(east(servers) if region == "east" else west(servers))
        pool = engine.pool
        assert pool is not None
        wait_for(lambda: bool(pool.watch.executors()), LIMIT_SECONDS)
        say(f"on {' '.join(each.region for each in pool.watch.executors())}")
        if region == "east":
            engine.drain(LIMIT_SECONDS)
        else:
            wait_for(lambda: sum(each.latency.count for each in engine.sinks()) >= ROWS, LIMIT_SECONDS)
    say("done")


def east(servers: str) -> Pipeline:
    table = pa.table({"id": range(ROWS), "value": [f'{{"id": {number}}}' for number in range(ROWS)]})
    pipeline = Pipeline("east")
    rows = pipeline.source("rows", sources.Replay(table, rows_per_second=ROWS, loop=False))
    rows.operator("text", lambda frame: frame.select("value")).sink("topic", sinks.Kafka(servers, TOPIC))
    return pipeline


def west(servers: str) -> Pipeline:
    pipeline = Pipeline("west")
    records = pipeline.source("records", sources.Kafka(servers, TOPIC))
    parsed = records.parse("parsed", "id BIGINT NOT NULL")
    twice = parsed.operator("twice", lambda frame: frame.selectExpr("id", "2 * id as twice"))
    twice.sink("kept", sinks.JsonLines(str(Path.cwd() / "kept")))
    return pipeline


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
