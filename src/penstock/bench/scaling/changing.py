"""Slots that change under load, again and again: what is lost or doubled, and for how long nothing moves."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.bench.batching.load import Feed
from penstock.measure.turns import TurnRecord
from penstock.operators.emulate import service
from penstock.operators.scan import Recurrence, scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "input BIGINT, key INT"
KEYS = 40
WORK_SECONDS = 0.02
STAGES = {"stateless": "changes.work", "stateful": "changes.count"}


def changed_under_load(session: Any, pool: int, folder: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """`changes` changes of a stage without state and of one with, by turns, with `rate` rows a second."""
    seen = _Seen()
    with (
        Spool(folder / "input") as spool,
        Engine(session, state=folder / "state", slots=pool, policy="fifo", state_store="rocksdb") as engine,
    ):
        engine.on_turn(seen.turned)
        engine.submit(_pipeline(spool, seen))
        fed: list[int] = []

        def put(table: pa.Table, due: float) -> None:
            spool.append(table)
            fed.append(table["input"][0].as_py())

        # One goes ahead, so that the stages have started.
        put(_row(0), 0.0)
        engine.drain(120.0)
        rows = range(1, int(request["rate"] * request["seconds"]))
        feed = Feed([(each / request["rate"], _row(each)) for each in rows], put, time.time())
        feed.start()
        made = _change(engine, seen, request)
        feed.stop()
        engine.drain(300.0)
    return seen.told(made, set(fed))


def _change(engine: Engine, seen: _Seen, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each stage to and fro between two numbers of slots, a while apart."""
    made, wanted = [], dict.fromkeys(STAGES.values(), 2)
    for number in range(request["changes"]):
        kind = tuple(STAGES)[number % len(STAGES)]
        stage = STAGES[kind]
        wanted[stage] = 5 - wanted[stage]
        time.sleep(request["between"])
        begin = time.time()
        changes = engine.set_slots({stage: wanted[stage]})
        seen.wait_for_turn(stage, time.time())
        pauses = [each.pause_seconds for each in changes]
        made.append({"kind": kind, "begin": begin, "end": time.time(), "pause_seconds": sum(pauses)})
    return made


def _pipeline(spool: Spool, seen: _Seen) -> Pipeline:
    pipeline = Pipeline("changes", fuse=False)
    rows = pipeline.source("rows", sources.FromSpool(spool, SCHEMA))
    worked = rows.operator("work", service(WORK_SECONDS, scv=0.5, seed=1), parallelism=2)
    counted = worked.operator("count", _counted, stateful=True, parallelism=2)
    counted.sink("out", sinks.Callback(seen.came))
    return pipeline


def _counted(rows: DataFrame) -> DataFrame:
    """Each row with how many of its key have come: a state that is lost would begin at 1 again."""
    count = Recurrence({"n": 0}, lambda state, row: {"n": state.n + 1}, lambda state, row: {"n": state.n})
    return scan(rows, count, by="key", order="input")


def _row(number: int) -> pa.Table:
    columns = {"input": pa.array([number], pa.int64()), "key": pa.array([number % KEYS], pa.int32())}
    return pa.table(columns)


class _Seen:
    """What came out, and when turns ended."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._rows: Counter[int] = Counter()
        self._counts: list[tuple[int, int]] = []
        self._ends: dict[str, list[float]] = {name: [] for name in STAGES.values()}

    def came(self, table: pa.Table, batch: int) -> None:
        with self._lock:
            self._rows.update(table["input"].to_pylist())
            self._counts += zip(table["key"].to_pylist(), table["n"].to_pylist(), strict=True)

    def turned(self, record: TurnRecord) -> None:
        with self._lock:
            self._ends[record.stage].append(record.finished_at)
            self._lock.notify_all()

    def wait_for_turn(self, stage: str, after: float) -> None:
        """Until a turn of the stage has ended after that moment, or a minute has passed."""
        with self._lock:
            self._lock.wait_for(lambda: any(end > after for end in self._ends[stage][-3:]), 60.0)

    def told(self, made: list[dict[str, Any]], expected: set[int]) -> dict[str, Any]:
        wrong = sum(
            sorted(n for key, n in self._counts if key == each) != list(range(1, count + 1))
            for each, count in Counter(key for key, _ in self._counts).items()
        )
        return {
            "changes": len(made),
            "lost": len(expected - set(self._rows)),
            "doubled": sum(count - 1 for count in self._rows.values()),
            "keys_miscounted": wrong,
            "pauses": {kind: [self._gap(each) for each in made if each["kind"] == kind] for kind in STAGES},
            "told_pauses": [each["pause_seconds"] for each in made if each["kind"] == "stateful"],
        }

    def _gap(self, change: Mapping[str, Any]) -> float:
        """The longest gap between turn ends around a change, less the median gap of all."""
        ends = self._ends[STAGES[change["kind"]]]
        gaps = [(one, other) for one, other in pairwise(ends)]
        usual = median(other - one for one, other in gaps)
        touched = [other - one for one, other in gaps if other >= change["begin"] and one <= change["end"]]
        return max(touched, default=0.0) - usual
