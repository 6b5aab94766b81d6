"""A policy of your own, by the four functions of Cameo: the message with the fewest rows runs first.

    python examples/own_policy.py [FOLDER]

A context goes with the rows of every message, and a reply comes back from every stage with what it cost; what
is made of replies stays as it is here.
`check_policy` tries the contract that all policies keep, before a single row depends on it.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock import Engine, Pipeline, sinks, sources
from penstock.scheduling import ContextPolicy, PriorityContext, check_policy


@dataclass(frozen=True, slots=True)
class SmallestFirst(ContextPolicy):
    """The message with the fewest rows runs first, and what is made of it after it."""

    def at_source(self, message, target):
        return PriorityContext(
            message.id, message.time, float(message.rows), message.time, message.time, target.latency_seconds
        )

    def at_operator(self, context, message, target):
        return context


def copied(name: str, rows: int, folder: Path) -> Pipeline:
    pipeline = Pipeline(name)
    trace = pa.table({"id": list(range(rows))})
    read = pipeline.source("rows", sources.Replay(trace, rows_per_second=rows, loop=False))
    read.operator("twice", lambda frame: frame.selectExpr("id", "2 * id as twice")).sink(
        "out", sinks.Parquet(folder / name)
    )
    return pipeline


def main(folder: Path) -> None:
    policy = SmallestFirst()
    check_policy(policy)
    with Engine(state=folder / "state", policy=policy) as engine:
        engine.submit(copied("few", 200, folder))
        engine.submit(copied("many", 20_000, folder))
        engine.drain()
        for stage in engine.stages():
            print(f"{stage.stage}: {stage.figures.total_rows_in} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "penstock-examples/own_policy"))
