"""A first pipeline: readings come in, all warm ones are kept, and the peak of every ten seconds is told.

    python examples/first_pipeline.py [FOLDER]

Operators are functions from DataFrame to DataFrame. The two sinks have targets of their own, and Penstock
runs first what must be there first. Results are files, each row in them exactly once.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from penstock import Engine, Pipeline, sinks, sources

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def readings(count: int = 3000) -> pa.Table:
    """A minute of seven sensors."""
    return pa.table(
        {
            "sensor": [f"s{number % 7}" for number in range(count)],
            "celsius": [20.0 + number % 15 for number in range(count)],
            "at": [NOON + timedelta(seconds=60 * number / count) for number in range(count)],
        }
    )


def heat(folder: Path) -> Pipeline:
    pipeline = Pipeline("heat")
    rows = pipeline.source("readings", sources.Replay(readings(), rows_per_second=1500, loop=False))
    warm = rows.operator("warm", lambda frame: frame.where("celsius > 25"))
    warm.sink("archive", sinks.Parquet(folder / "archive"), latency="10s")
    peaks = warm.window("peaks", on="at", size="10s", by="sensor", aggregate="max(celsius) as peak")
    peaks.sink("alarms", sinks.JsonLines(folder / "alarms"), latency="800ms")
    return pipeline


def main(folder: Path) -> None:
    with Engine(state=folder / "state") as engine:
        engine.submit(heat(folder))
        engine.drain()
        for sink in engine.sinks():
            print(f"{sink.sink}: {sink.share_in_time:.0%} in time")
    lines = [line for file in (folder / "alarms").glob("*.jsonl") for line in file.read_text().splitlines()]
    alarms = [json.loads(line) for line in lines]
    for row in sorted(alarms, key=lambda row: (row["window"]["start"], row["sensor"])):
        print(row["window"]["start"], row["sensor"], row["peak"])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "penstock-examples/first_pipeline"))
