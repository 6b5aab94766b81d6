"""Spark's real-time mode: a query is tried in one form after the other, and the first that Spark takes runs.

Its rows come from the only source of real-time mode that needs no broker, a message each, and go to a sink of
its list, both in the JVM. Files and `foreachBatch`, which the rivals use, are on none of its lists.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.bench.tenants.feeder import Part
from penstock.bench.tenants.load import Load
from penstock.bench.tenants.meter import Counts, ResultMeter, RowMeter, Turn
from penstock.bench.tenants.side import SETTINGS
from penstock.errors import PenstockError
from penstock.pipeline.windows import interval
from penstock.spark.jvm import frame_of, java_session, jvm
from penstock.workloads.tenants.arrivals import window_end
from penstock.workloads.tenants.events import VIEW, AdEvents
from penstock.workloads.tenants.frames import FRAMES, LATE_SECONDS
from penstock.workloads.tenants.groups import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SLOTS_A_QUERY = 2
"""One task reads for as long as the query lives, one keeps its state: real-time mode frees neither."""
# Spark's own choice: the state is written once in this time, and results do not wait for it.
BATCH = "5 minutes"
TRIAL_SECONDS = 60.0
LOOK_SECONDS = 0.05
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MESSAGE = "source array<int>, ad array<int>, kind array<int>, revenue array<double>, at array<bigint>"
TOTALS: Mapping[str, str] = {
    "ipq1": f"sum(revenue) FILTER (WHERE kind = {VIEW})",
    "ipq2": f"sum(revenue) FILTER (WHERE kind = {VIEW})",
    "ipq3": "count(*)",
}
"""The value of a window by one aggregation; IPQ4 has none, as it multiplies sums by ad."""

Refusals = dict[str, str]
"""By form, why Spark refused it; the form that it took, if any, comes last with ""."""


@dataclass(frozen=True)
class Form:
    """A way to put a query."""

    name: str
    mode: str
    frame: Callable[[DataFrame, Job], DataFrame]


def whole(rows: DataFrame, job: Job) -> DataFrame:
    """The query as the rivals run it."""
    late = max(LATE_SECONDS, job.message_seconds)
    return FRAMES[job.query](rows, job.window_seconds, late, job.slide_count)


def running_total(rows: DataFrame, job: Job) -> DataFrame:
    """The value alone, by window: there with every row, and never told to be the last."""
    from pyspark.sql import functions as F

    late = max(LATE_SECONDS, job.message_seconds)
    windows = F.window("at", interval(job.window_seconds), interval(job.slide_seconds))
    totals = rows.withWatermark("at", interval(late)).groupBy(windows)
    return totals.agg(F.expr(f"{TOTALS[job.query]} as value")).selectExpr("window.end as at", "value")


def forms_of(query: str) -> tuple[Form, ...]:
    """The forms to try, the query itself first."""
    forms = (Form("the query", "append", whole), Form("the query, update mode", "update", whole))
    if query not in TOTALS:
        return forms
    return (*forms, Form("running totals by one aggregation, update mode", "update", running_total))


class Totals(ResultMeter):
    """Running totals as they stand: a window's result is there when its value is right."""

    final = False

    def __init__(self, classes: Any, name: str):
        super().__init__()
        self._classes = classes
        self.name = name

    def _told(self) -> list[tuple[float, float, float]]:
        lines = self._classes.penstock.RunningTotals.told(self.name).splitlines()
        parts = [line.split() for line in lines]
        return [(window_end(int(end)), float(value), float(at)) for end, value, at in parts]

    @property
    def came(self) -> dict[float, float]:
        return {end: at for end, _, at in self._told()}

    @property
    def values(self) -> dict[float, float | None]:
        return {end: value for end, value, _ in self._told()}


class RealTimeJob:
    """A job as a query in real-time mode, in one form."""

    def __init__(self, session: SparkSession, job: Job, folder: Path, totals: Totals):
        self._session = session
        self._job = job
        self._folder = folder
        self.totals = totals
        classes = jvm(session)
        sources = classes.org.apache.spark.sql.execution.streaming.sources
        strings = classes.org.apache.spark.sql.Encoders.STRING()
        self._source = sources.LowLatencyMemoryStream.singlePartition(java_session(session), strings)
        self.query: StreamingQuery | None = None

    def start(self, form: Form) -> None:
        """Raises what Spark says against the form; some of it Spark says later, in the query's own thread."""
        made = form.frame(self._rows(), self._job).selectExpr("unix_micros(at) as at", "value")
        writer = made.writeStream.queryName(self.totals.name).outputMode(form.mode)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        # PySpark takes it, but none of the overloads that it declares does.
        writer.trigger(realTime=BATCH)  # type: ignore[call-overload]
        # PySpark's own `foreach` would send every update to a Python process.
        writer._jwrite.foreach(jvm(self._session).penstock.RunningTotals(self.totals.name))
        self.query = writer.start()

    def _rows(self) -> DataFrame:
        from pyspark.sql import functions as F

        message = F.from_json("value", MESSAGE).alias("m")
        text = frame_of(self._source.toDF(), self._session)
        columns = "inline(arrays_zip(m.source, m.ad, m.kind, m.revenue, m.at))"
        return text.select(message).selectExpr(columns).withColumn("at", F.timestamp_micros("at"))

    def put(self, parts: Sequence[Part]) -> None:
        for _, rows in parts:
            columns = {name: rows[name] for name in ("source", "ad", "kind", "revenue")}
            told = columns | {"at": rows["at"].cast("int64")}
            text = json.dumps({name: column.to_pylist() for name, column in told.items()})
            self._source.addData(jvm(self._session).PythonUtils.toSeq([text]))

    def first_result(self) -> str:
        """Waits for a result of rows of long ago; why there is none, or ""."""
        assert self.query is not None
        window = self._job.window_seconds
        self.put([(0, AdEvents().rows(100, 0.0, window))])
        until = time.monotonic() + TRIAL_SECONDS
        while not self.totals.came and self.query.isActive and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        if self.totals.came:
            return ""
        error = self.query.exception()
        return f"no result within {TRIAL_SECONDS:g} s" if error is None else first_line(error)

    @property
    def error(self) -> str:
        if self.query is None or self.query.isActive:
            return ""
        return f"{self._job.name}: {self.query.exception() or 'it ended by itself'}"

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()
        jvm(self._session).penstock.RunningTotals.forget(self.totals.name)


def first_line(error: BaseException) -> str:
    """What Spark says, without the plan and the trace below it."""
    return str(error).strip().splitlines()[0]


class RealTime:
    """All jobs as queries in real-time mode."""

    scheduler_seconds = 0.0
    turn_seconds = 0.0
    cuts = (0, 0)

    def __init__(self, folder: Path, slots: int):
        from penstock.spark.session import build_session

        own = {"spark.sql.streaming.stateStore.providerClass": STATE_STORE}
        self._session = build_session(cores=slots, settings={**SETTINGS, **own})
        self._folder = folder
        self._jobs: dict[str, RealTimeJob] = {}
        self._tried: dict[str, Refusals] = {}
        self._meters = 0

    def meter_of(self, job: Job) -> Totals:
        """A meter for one start of the job."""
        self._meters += 1
        return Totals(jvm(self._session), f"{job.name}-{self._meters}")

    def tried(self, job: Job) -> Refusals:
        """What Spark says to each form of the job's query, until it takes one; asked once for each query."""
        known = self._tried.setdefault(job.query, {})
        for form in forms_of(job.query):
            if "" not in known.values() and form.name not in known:
                known[form.name] = self._try(job, form, self._folder / f"trial-{job.query}-{len(known)}")
        return known

    def _try(self, job: Job, form: Form, folder: Path) -> str:
        from pyspark.errors import PySparkException

        trial = RealTimeJob(self._session, job, folder, self.meter_of(job))
        try:
            trial.start(form)
            return trial.first_result()
        except PySparkException as error:
            return first_line(error)
        finally:
            trial.stop()

    def start(self, folder: Path, load: Load, meters: Mapping[str, ResultMeter | RowMeter]) -> None:
        for job in load.jobs:
            said = self.tried(job)
            taken = next((form for form in forms_of(job.query) if said.get(form.name) == ""), None)
            if taken is None:
                raise PenstockError(
                    f"real-time mode must take a form of {job.query}, but Spark says "
                    f"{'; '.join(said.values())}: there is nothing to run"
                )
            totals = meters[job.name]
            assert isinstance(totals, Totals), "a worker for real-time mode asks this side for its meters"
            self._jobs[job.name] = RealTimeJob(self._session, job, folder / job.name, totals)
            self._jobs[job.name].start(taken)

    def stop(self) -> None:
        jobs, self._jobs = self._jobs, {}
        for each in jobs.values():
            each.stop()

    def put(self, job: str, due: float, parts: Sequence[Part]) -> None:
        self._jobs[job].put(parts)

    def done(self, job: str, end: float) -> Counts:
        return []

    @property
    def error(self) -> str:
        return "; ".join(each.error for each in self._jobs.values() if each.error)

    def turns(self, job: str) -> list[Turn]:
        return []

    def window_turns(
        self, job: str, completed: Mapping[float, float], came: Mapping[float, float]
    ) -> list[int]:
        return []
