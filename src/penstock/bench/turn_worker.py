"""One side of `bench turns` in a process of its own: a JVM has one SparkContext, with one set of settings.

Asked {"lane": NAME, "turns": N}, it answers with the seconds of each turn.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.bench.lanes import QUERIES, Lane, generated
from penstock.bench.workers import serve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOTS = 2
ROWS_PER_TURN = 1000
SAME_ON_BOTH_SIDES = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


def plain_session() -> SparkSession:
    """Spark's defaults, with the machine's share, the collector and the noise of our own session."""
    from pyspark.sql import SparkSession

    from penstock.spark.session import preset

    options = preset(SLOTS)["spark.driver.extraJavaOptions"].value
    builder = SparkSession.builder.master(f"local[{SLOTS}]").appName("plain")
    for key, value in {**SAME_ON_BOTH_SIDES, "spark.driver.extraJavaOptions": options}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def start_plain(session: SparkSession, query: str, folder: Path) -> Lane:
    """The query as one writes it in PySpark."""
    lane = Lane(ROWS_PER_TURN)
    frame = QUERIES[query](generated(session, lane.rows_per_turn))
    writer = frame.writeStream.foreachBatch(lane.on_batch).outputMode("append")
    writer.option("checkpointLocation", str(folder / f"plain-{query}")).start()
    return lane


def defaults_lanes(folder: Path) -> dict[str, Lane]:
    session = plain_session()
    return {query: start_plain(session, query, folder) for query in QUERIES}


def our_lanes(folder: Path) -> dict[str, Lane]:
    """The same queries adopted by an engine, and one beside them that has no gate."""
    from penstock.spark.engine import Engine
    from penstock.spark.session import build_session

    session = build_session(cores=SLOTS, settings=SAME_ON_BOTH_SIDES)
    # A lane rests inside its turn and keeps its slot, so each needs one of its own.
    engine = Engine(session, state=folder / "state", slots=len(QUERIES))
    lanes = {}
    for query, build in QUERIES.items():
        lanes[query] = Lane(ROWS_PER_TURN)
        engine.start(build(generated(session, ROWS_PER_TURN)), lanes[query].on_batch, name=query)
    for query in QUERIES:
        lanes[f"ungated-{query}"] = start_plain(session, query, folder)
    return lanes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=("defaults", "ours"), required=True)
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    lanes = defaults_lanes(asked.folder) if asked.side == "defaults" else our_lanes(asked.folder)
    serve(sorted(lanes), lambda asked: lanes[asked["lane"]].run(asked["turns"]))


if __name__ == "__main__":
    main()
