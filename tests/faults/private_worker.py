"""A process that releases counts from a privacy budget until it is killed.

Its input is filled before it starts: `python -m tests.faults.private_worker FOLDER`.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from tests.spark.streams import from_spool

from penstock import Engine, Pipeline, Spool, sinks
from penstock.operators.privacy import Budget, private_counts
from penstock.spark.session import build_session

EPSILON, RELEASE = 1.0, 0.3
"""Of the budget of each subject: it is in three windows, and then in no more."""
WINDOW_SECONDS = 2


def budget_of(folder: Path) -> Budget:
    return Budget(folder / "budget.db", EPSILON)


def private_pipeline(source: Spool, folder: Path) -> Pipeline:
    """Rows of each window, with noise, to JSON lines; the sensors are the subjects."""
    pipeline = Pipeline("private")
    counts = private_counts(
        budget_of(folder),
        product="rows",
        epsilon=RELEASE,
        on="ts",
        size=float(WINDOW_SECONDS),
        subject="sensor",
    )
    counts.add_to(pipeline.source("readings", from_spool(source)), "counts").sink(
        "out", sinks.JsonLines(folder / "out")
    )
    return pipeline


def main(folder: Path) -> None:
    engine = Engine(
        build_session(cores=2), state=folder / "state", slots=2, policy="fifo", consumption="at-most-20"
    )
    engine.submit(private_pipeline(Spool(folder / "input"), folder))
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
