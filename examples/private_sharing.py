"""Data about people, made fit to share: pseudonyms for one consumer, crowds of five or more for another.

    python examples/private_sharing.py [FOLDER]

The key is made here, in a file that only its owner can read; a real one comes from wherever you keep secrets.
It never stands in a pipeline, a checkpoint, a segment or a log.
"""

import base64
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock import Engine, Pipeline, sinks, sources
from penstock.operators.privacy import Keys, generalise_time, k_anonymous, pseudonymise

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def visits(count: int = 2000) -> pa.Table:
    """Forty people in three buildings; few of them ever go to the third."""
    buildings = ["library" if number % 40 < 25 else "gym" for number in range(count)]
    buildings[::400] = ["lab"] * len(buildings[::400])
    return pa.table(
        {
            "subject": [f"person{number % 40}" for number in range(count)],
            "building": buildings,
            "at": [NOON + timedelta(seconds=60 * number / count) for number in range(count)],
        }
    )


def make_key(file: Path) -> Keys:
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(base64.b64encode(os.urandom(32)).decode())
    return Keys.from_file(file)


def sharing(folder: Path, keys: Keys) -> Pipeline:
    pipeline = Pipeline("sharing")
    rows = pipeline.source("visits", sources.Replay(visits(), rows_per_second=2000, loop=False))
    crowds = k_anonymous(5, on="at", size="10s", by="building", aggregate="count(*) as visits")
    rows.operator("crowds", crowds, stateful=True, watermark="at").sink(
        "occupancy", sinks.Parquet(folder / "occupancy"), latency="5s"
    )
    hidden = rows.operator("pseudonyms", pseudonymise("subject", keys, period="30d"))
    hidden.operator("coarse", generalise_time("at", "15m")).sink(
        "research", sinks.Parquet(folder / "research"), latency="30s"
    )
    return pipeline


def main(folder: Path) -> None:
    with Engine(state=folder / "state") as engine:
        engine.submit(sharing(folder, make_key(folder / "key")))
        engine.drain()
    research = pq.read_table(folder / "research")
    print(f"research: {research.num_rows} visits, the first of {research['subject'][0].as_py()[:12]}...")
    for row in pq.read_table(folder / "occupancy").to_pylist():
        told = (
            f"{row['suppressed']} groups hidden" if row["building"] is None else f"{row['subjects']} people"
        )
        print(f"{row['window']['start']:%H:%M:%S} {row['building'] or '-':8} {told}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "penstock-examples/private_sharing"))
