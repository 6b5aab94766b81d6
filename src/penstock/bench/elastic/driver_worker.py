"""Many tiny stages in one driver, in a process of its own: how many turns a second, and where time goes."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
import pyarrow as pa

from penstock import Engine, Pipeline, Spool, sinks, sources
from penstock.bench.workers import ending_at_once, serve
from penstock.errors import PenstockError
from penstock.spark import granted_frames
from penstock.spark.jvm import jvm
from penstock.spark.session import build_session

SCHEMA = "number BIGINT"
SAMPLE_SECONDS = 0.005
PLACES: tuple[tuple[str, str], ...] = (
    ("py4j", "Spark: planning, jobs and tasks, asked over the bridge"),
    ("penstock/spark/dispatcher", "scheduling"),
    ("penstock/scheduling", "scheduling"),
    ("penstock/queues", "queues: segments and journals"),
    ("penstock/spark/inputs", "queues: segments and journals"),
    ("pyarrow", "results to Arrow"),
    ("penstock/spark/results", "results to Arrow"),
    ("penstock/spark/bookkeeping", "figures and records"),
    ("penstock/measure", "figures and records"),
    ("penstock/spark/stage_line", "contexts and order of rows"),
)
THREADS: tuple[tuple[str, str], ...] = (
    ("Executor task launch", "tasks"),
    ("dag-scheduler", "Spark's scheduler"),
    ("task-result-getter", "Spark's scheduler"),
    ("dispatcher-", "Spark's messages"),
    ("spark-listener", "Spark's listeners"),
    ("SparkListenerBus", "Spark's listeners"),
    ("Thread-", "planning, asked over the bridge"),
)
OTHERS = "the rest"


class Sampler:
    """Looks at the stacks of the threads that have turns, and tells where in the code they are."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(SAMPLE_SECONDS):
            frames = sys._current_frames()
            turns = [each.ident for each in threading.enumerate() if each.name.startswith("penstock-turn")]
            places = [place_of(frames.get(each or 0)) for each in turns]
            self.seen.update(place for place in places if place)

    def stop(self) -> dict[str, float]:
        self._stopping.set()
        self._thread.join()
        total = sum(self.seen.values()) or 1
        return {place: count / total for place, count in self.seen.most_common()}


def place_of(frame: FrameType | None) -> str:
    """The innermost known place on a stack; "" for a thread without a turn."""
    files = []
    while frame is not None:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    if not any(file.endswith(("spark/direct.py", "spark/dispatcher.py")) for file in files):
        return ""
    for file in files:
        for part, place in PLACES:
            if part in file:
                return place
    return OTHERS


class Worker:
    """One session; each question runs an engine of its own."""

    def __init__(self, asked: argparse.Namespace):
        self._folder, self._slots = asked.folder, asked.slots
        self._session = build_session(cores=asked.slots)
        self._runs = 0

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._runs += 1
        granted_frames.ROWS_WITHOUT_A_JOB = -1 if request["jobs"] else 2_000
        folder = self._folder / f"turns-{self._runs}"
        spools = [Spool(folder / f"input-{number}") for number in range(request["stages"])]
        for number in range(request["rows"]):
            for spool in spools:
                spool.append(pa.table({"number": pa.array([number], pa.int64())}))
        engine = Engine(self._session, state=folder / "state", slots=self._slots, consumption="at-most-1")
        try:
            return self._measure(engine, spools, request)
        finally:
            engine.stop()
            for spool in spools:
                spool.close()

    def _measure(self, engine: Engine, spools: list[Spool], request: Mapping[str, Any]) -> dict[str, Any]:
        ends: list[float] = []
        engine.on_turn(lambda record: ends.append(record.finished_at))
        for number, spool in enumerate(spools):
            engine.submit(_tiny(f"tiny{number}", spool))
        time.sleep(request["warmup"])
        threads, scheduled = self._threads(), engine.scheduler_seconds
        begin, used = time.time(), self._used()
        sampler = Sampler()
        time.sleep(request["seconds"])
        end, python = time.time(), sampler.stop()
        turns = sum(begin <= each < end for each in ends)
        # Threads that have ended meanwhile took their seconds with them.
        java = {name: max(seconds - threads.get(name, 0.0), 0.0) for name, seconds in self._threads().items()}
        spent = {name: after - used[name] for name, after in self._used().items()}
        left = sum(each.figures.rows_waiting for each in engine.stages())
        check_left(left)
        java["compiling and collecting garbage"] = max(spent["java"] - sum(java.values()), 0.0)
        return {
            "turns_per_second": turns / (end - begin),
            "left": left,
            "where": python,
            "python_cpu_ms": 1000.0 * spent["python"] / max(turns, 1),
            "java_cpu_ms": {name: 1000.0 * each / max(turns, 1) for name, each in java.items()},
            "scheduler_ms": 1000.0 * (engine.scheduler_seconds - scheduled) / max(turns, 1),
        }

    def _used(self) -> dict[str, float]:
        """Processor seconds of this process and of its JVM."""
        own = psutil.Process()
        java = sum(sum(each.cpu_times()[:2]) for each in own.children(recursive=True))
        return {"python": sum(own.cpu_times()[:2]), "java": java}

    def _threads(self) -> dict[str, float]:
        """Processor seconds of the JVM's threads that live, by what they do."""
        bean = jvm(self._session).java.lang.management.ManagementFactory.getThreadMXBean()
        found: dict[str, float] = {}
        for each in bean.getAllThreadIds():
            told = bean.getThreadInfo(each)
            if told is not None:
                name = str(told.getThreadName())
                kind = next((kind for begin, kind in THREADS if name.startswith(begin)), OTHERS)
                found[kind] = found.get(kind, 0.0) + max(bean.getThreadCpuTime(each), 0) / 1e9
        return found


def check_left(rows: int) -> None:
    """Refuses a measurement at whose end nothing was left to do: turns waited for rows."""
    if rows == 0:
        raise PenstockError("rows must be left at the end, got none: stages were without work for a while")


def _tiny(name: str, spool: Spool) -> Pipeline:
    pipeline = Pipeline(name)
    rows = pipeline.source("numbers", sources.FromSpool(spool, SCHEMA))
    rows = rows.operator("next", lambda frame: frame.selectExpr("number + 1 as number"))
    rows.sink("out", sinks.Callback(lambda table, batch: None))
    return pipeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--slots", type=int, default=2)
    asked = parser.parse_args()
    with ending_at_once():
        serve(True, Worker(asked).answer)


if __name__ == "__main__":
    main()
