"""One side of `bench tenants` in a process of its own: asked to run loads, it answers with all figures."""

from __future__ import annotations

import argparse
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.bench.tenants.feeder import Feeder
from penstock.bench.tenants.load import NOOP, Load
from penstock.bench.tenants.meter import Interval, ResultMeter, RowMeter
from penstock.bench.tenants.ours import Ours
from penstock.bench.tenants.plain import Plain
from penstock.bench.tenants.realtime import RealTime
from penstock.bench.tenants.side import REAL_TIME, RIVALS, SIDES, Side
from penstock.bench.workers import ending_at_once, serve
from penstock.errors import PenstockError
from penstock.workloads.tenants.arrivals import Message, completed_at, in_ticks, messages_of
from penstock.workloads.tenants.groups import Job

LOOK_SECONDS = 0.5
# What runs at the end is waited for under the same load: it would be quicker if nothing came any more.
FED_ON_SECONDS = 125.0


class Worker:
    """A side that runs one load after the other, each from nothing, all on one warm session."""

    def __init__(
        self, side: Side, folder: Path, meter_of: Callable[[Job], ResultMeter | RowMeter] | None = None
    ):
        self._side = side
        self._folder = folder
        self._meter_of = meter_of or _meter
        self._loads = 0

    def answer(self, request: Mapping[str, Any]) -> Any:
        return self.run(Load.from_json(request["load"]), request["warmup"], request["measured"])

    def run(self, load: Load, warmup: float, measured: float) -> dict[str, Any]:
        """Feeds the load for so long, and tells what the measured part showed."""
        self._loads += 1
        folder = self._folder / f"load-{self._loads}"
        try:
            return self._run(folder, load, warmup, measured)
        finally:
            self._side.stop()
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, folder: Path, load: Load, warmup: float, measured: float) -> dict[str, Any]:
        lasts = warmup + measured + FED_ON_SECONDS
        schedules = {job.name: in_ticks(messages_of(job, lasts)) for job in load.jobs}
        meters: dict[str, ResultMeter | RowMeter] = {job.name: self._meter_of(job) for job in load.jobs}
        feeder = Feeder(load.jobs, schedules, self._side.put)
        self._side.start(folder, load, meters)
        base = float(math.ceil(time.time()) + 1)
        feeder.start(base)
        self._wait(base + warmup, feeder)
        begun = self._side.scheduler_seconds, self._side.turn_seconds, self._side.cuts
        self._wait(base + warmup + measured, feeder)
        interval = Interval(base, base + warmup, base + warmup + measured)
        scheduler_seconds = self._side.scheduler_seconds - begun[0]
        turn_seconds = self._side.turn_seconds - begun[1]
        made, overran = (now - then for now, then in zip(self._side.cuts, begun[2], strict=True))
        done = {job.name: self._side.done(job.name, interval.end) for job in load.jobs}
        self._check(feeder)
        feeder.stop()
        fed = {
            name: came_or_due(messages, warmup + measured, len(feeder.fed[name]))
            for name, messages in schedules.items()
        }
        jobs = {
            job.name: interval.job_report(
                job, fed[job.name], meters[job.name], feeder.offered[job.name], done[job.name]
            )
            for job in load.jobs
        }
        for name, told in jobs.items():
            told["turns"] = [
                each._replace(granted_at=each.granted_at - base) for each in self._side.turns(name)
            ]
            told["fed"] = feeder.fed[name]
        return {
            "jobs": jobs,
            "scheduler_seconds": scheduler_seconds,
            "turn_seconds": turn_seconds,
            "cuts": (made, overran),
            "window_turns": self._window_turns(load, interval, fed, meters),
            "feeder_lag_seconds": feeder.lag_seconds,
            "warmup": warmup,
            "measured": measured,
        }

    def _wait(self, until: float, feeder: Feeder) -> None:
        while (left := until - time.time()) > 0:
            time.sleep(min(left, LOOK_SECONDS))
            self._check(feeder)

    def _check(self, feeder: Feeder) -> None:
        if self._side.error:
            raise PenstockError(f"all jobs must run on, but {self._side.error}")
        if feeder.error is not None:
            raise PenstockError(f"all messages must be fed, but: {feeder.error}") from feeder.error

    def _window_turns(
        self,
        load: Load,
        interval: Interval,
        schedules: Mapping[str, Any],
        meters: Mapping[str, ResultMeter | RowMeter],
    ) -> list[int]:
        """Of the urgent jobs' results in the interval."""
        found: list[int] = []
        for job in load.jobs:
            if job.group == "urgent" and job.query != NOOP:
                moments = completed_at(
                    schedules[job.name], job.window_seconds, job.slide_seconds, interval.base
                )
                inside = {end: at for end, at in moments.items() if interval.begin <= at < interval.end}
                found += self._side.window_turns(job.name, inside, meters[job.name].came)
        return found


class RealTimeWorker(Worker):
    """The side whose queries Spark may refuse: it is asked to try them first."""

    def __init__(self, side: RealTime, folder: Path):
        super().__init__(side, folder, side.meter_of)
        self._real_time = side

    def answer(self, request: Mapping[str, Any]) -> Any:
        if request["do"] == "try":
            jobs = Load.from_json(request["load"]).jobs
            return {job.query: self._real_time.tried(job) for job in jobs}
        return super().answer(request)


def came_or_due(messages: Sequence[Message], seconds: float, fed: int) -> list[Message]:
    """The messages that were fed, or were due within the run's `seconds`: what results can be made of."""
    return [each for place, each in enumerate(messages) if place < fed or each.due <= seconds]


def _meter(job: Job) -> ResultMeter | RowMeter:
    return RowMeter() if job.query == NOOP else ResultMeter()


def make_worker(asked: argparse.Namespace) -> Worker:
    if asked.side == REAL_TIME:
        return RealTimeWorker(RealTime(asked.folder, asked.slots), asked.folder)
    if asked.side in RIVALS:
        return Worker(Plain(asked.folder, asked.slots, fair=asked.side == "fair"), asked.folder)
    ours = Ours(asked.slots, fifo=asked.side == "gate", fused=asked.side != "stages")
    return Worker(ours, asked.folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--side", choices=tuple(SIDES), required=True)
    parser.add_argument("--slots", type=int, default=2)
    asked = parser.parse_args()
    with ending_at_once():
        serve(True, make_worker(asked).answer)


if __name__ == "__main__":
    main()
