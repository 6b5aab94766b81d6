"""A stage that always has rows on a cluster of so many nodes: what it gets done, and what its turns took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.bench.elastic.cluster_session import await_executors, session_on
from penstock.errors import PenstockError
from penstock.measure.turns import TurnRecord
from penstock.operators.emulate import service
from penstock.spark.cluster.standalone import StandaloneCluster

SEGMENT_ROWS = 20
TURN_SECONDS = 1.0


class SaturatedRun:
    """As many replicas as nodes; a row waits in its task for an emulated time."""

    def __init__(self, folder: Path, asked: Mapping[str, Any]):
        self._folder, self._asked = folder, asked
        cluster = StandaloneCluster(Path(asked["cluster"]))
        self._session = session_on(cluster.url, folder / "state")
        await_executors(self._session, asked["nodes"])
        self._turns: list[TurnRecord] = []

    def figures(self) -> dict[str, Any]:
        asked = self._asked
        seconds = asked["warmup"] + asked["seconds"]
        # A second of work in a turn: before costs are known one would take all there is.
        most = f"at-most-{int(asked['nodes'] * TURN_SECONDS / asked['row_seconds'])}"
        with (
            Spool(self._folder / "input") as spool,
            Engine(self._session, state=self._folder / "state", consumption=most) as engine,
        ):
            rows = int(1.5 * seconds * asked["nodes"] / asked["row_seconds"])
            for first in range(0, rows, SEGMENT_ROWS):
                spool.append(pa.table({"number": pa.array(range(first, first + SEGMENT_ROWS), pa.int64())}))
            engine.on_turn(self._turns.append)
            running = engine.submit(self._pipeline(spool))
            time.sleep(asked["warmup"])
            begin = time.time()
            time.sleep(asked["seconds"])
            end = time.time()
            if running.state != "running":
                raise PenstockError(f"a saturated stage must run on, but {running.error}")
        return self._told(begin, end)

    def _pipeline(self, spool: Spool) -> Pipeline:
        pipeline = Pipeline("saturated")
        rows = pipeline.source("numbers", sources.FromSpool(spool, "number BIGINT"))
        rows = rows.operator("work", service(self._asked["row_seconds"]), parallelism=self._asked["nodes"])
        rows.sink("out", sinks.Callback(lambda table, batch: None))
        return pipeline

    def _told(self, begin: float, end: float) -> dict[str, Any]:
        """From the end of the first whole turn to that of the last, so that no part of one counts."""
        turns = [each for each in self._turns if begin <= each.finished_at <= end]
        if len(turns) < 2:
            raise PenstockError(f"a saturated stage must have turns, got {len(turns)}: nothing was measured")
        seconds = turns[-1].finished_at - turns[0].finished_at
        return {
            "rows_per_second": sum(each.rows_in for each in turns[1:]) / seconds,
            "turns": [[each.rows_in, each.slots, each.turn_seconds] for each in turns],
        }
