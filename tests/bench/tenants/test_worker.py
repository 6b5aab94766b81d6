"""A worker from feeder to figures, over a side that computes its windows without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.bench.tenants.feeder import Part
from penstock.bench.tenants.load import Load
from penstock.bench.tenants.meter import Counts, ResultMeter, RowMeter, Turn
from penstock.bench.tenants.runs import Run
from penstock.bench.tenants.worker import Worker
from penstock.errors import PenstockError
from penstock.spark.feeders import wait_for
from penstock.workloads.tenants.groups import Job, urgent_jobs


@dataclass
class AtOnce:
    """A side that delivers IPQ1's windows of a second the moment their frontier is complete."""

    factor: float = 1.0
    error: str = ""
    scheduler_seconds: float = 0.0
    turn_seconds: float = 0.0
    cuts: tuple[int, int] = (0, 0)
    stopped: bool = False
    rows: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def start(self, folder: Path, load: Load, meters: Mapping[str, ResultMeter | RowMeter]) -> None:
        self._jobs: dict[str, Job] = {job.name: job for job in load.jobs}
        self._meters = meters
        self._sums: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        self._reached: dict[str, dict[int, int]] = defaultdict(dict)

    def stop(self) -> None:
        self.stopped = True

    def put(self, job: str, due: float, parts: Sequence[Part]) -> None:
        for source, rows in parts:
            views = rows.filter(pc.equal(rows["kind"], 0))
            for micros, revenue in zip(
                views["at"].cast("int64").to_pylist(), views["revenue"].to_pylist(), strict=True
            ):
                self._sums[job][micros // 1_000_000 + 1] += revenue
            self._reached[job][source] = rows["at"].cast("int64")[-1].as_py()
            self.rows[job].append((due, rows.num_rows))
        if len(self._reached[job]) == self._jobs[job].sources:
            self._deliver(job, min(self._reached[job].values()) // 1_000_000)

    def _deliver(self, job: str, frontier: int) -> None:
        for end in sorted(end for end in self._sums[job] if end <= frontier):
            value = self._sums[job].pop(end) * self.factor
            stamp = pa.array([end * 1_000_000]).cast(pa.timestamp("us", "UTC"))
            self._meters[job].take(pa.table({"at": stamp, "value": [value]}))
            self.scheduler_seconds += 0.001
            self.turn_seconds += 0.1

    def done(self, job: str, end: float) -> Counts:
        return self.rows[job]

    def turns(self, job: str) -> list[Turn]:
        return []

    def window_turns(
        self, job: str, completed: Mapping[float, float], came: Mapping[float, float]
    ) -> list[int]:
        return [1 for end in completed if end in came]


LOAD = Load(tuple(replace(each, sources=16, rows_per_second=4000) for each in urgent_jobs(2)))


def answer(side: AtOnce) -> Run:
    told = Worker(side, Path()).answer({"do": "run", "load": LOAD.to_json(), "warmup": 1.5, "measured": 3.0})
    return Run.of("ours", LOAD, 2, told)


def test_a_side_that_delivers_at_once_has_everything_in_time_and_nothing_wrong() -> None:
    run = answer(AtOnce())
    # Complete at whole seconds: those at 2, 3 and 4 lie in the measured part.
    assert [round(at, 3) for at, _, _ in run.jobs[0].samples] == [2.0, 3.0, 4.0]
    assert run.urgent.in_time == 1.0
    assert run.urgent.done == run.urgent.offered
    # But for what is still under way when the time is up.
    assert run.urgent.offered == pytest.approx(2 * 4000 * 3.0, rel=0.2)
    assert run.window_turns == (1,) * 6
    assert run.overhead_share == pytest.approx(0.01)
    assert all(
        each.backlog_by_second == pytest.approx((0.0,) * len(each.backlog_by_second)) for each in run.jobs
    )


class AfterTheEnd(AtOnce):
    """A side that must wait for what runs at the end."""

    def done(self, job: str, end: float) -> Counts:
        assert wait_for(lambda: self.rows[job][-1][0] > end, 5), "rows must come on meanwhile"
        return super().done(job, end)


def test_rows_come_on_while_the_last_turns_are_waited_for_and_count_for_nobody() -> None:
    run = answer(AfterTheEnd())
    assert run.urgent.done == run.urgent.offered == pytest.approx(2 * 4000 * 3.0, rel=0.05)
    assert run.urgent.missing == 0


def test_values_that_are_off_by_a_thousandth_are_found() -> None:
    with pytest.raises(PenstockError, match="all values at the sinks must be those of the batch computation"):
        answer(AtOnce(factor=1.001))


def test_a_side_whose_query_ends_is_refused_and_stopped() -> None:
    side = AtOnce(error="urgent-1: it ended by itself")
    with pytest.raises(PenstockError) as refused:
        answer(side)
    assert side.stopped
    assert str(refused.value) == "all jobs must run on, but urgent-1: it ended by itself"
