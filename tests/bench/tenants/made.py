"""Runs made up for tests: what a side's jobs showed, from a few numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from penstock.bench.tenants.load import Load
from penstock.bench.tenants.runs import JobRun, Run
from penstock.bench.tenants.stand import SLOTS, Stand, Times
from penstock.workloads.tenants.groups import Job, bulk_jobs, urgent_jobs

TIMES = Times(warmup=4.0, measured=20.0)


def job_run(job: Job, latencies: list[float], *, missing: int = 0, done: float = 100.0) -> JobRun:
    samples = [(float(at), latency, False) for at, latency in enumerate(latencies)]
    for place in range(missing):
        samples[place] = (*samples[place][:2], True)
    return JobRun(job, tuple(samples), 200.0, done, (done * 100,) * 24, (0.5,) * 20)


def made_run(
    side: str, load: Load, urgent: list[float], bulk: list[float] | None = None, done: float = 100.0
) -> Run:
    jobs = tuple(
        job_run(job, urgent if job.group == "urgent" else bulk or [9.0], done=done) for job in load.jobs
    )
    return Run(side, load, SLOTS, jobs, 0.5, 10.0, (1, 1, 2), 0.1, TIMES.warmup, TIMES.measured, (8, 2))


def mixed(bulk_rows_per_second: float, bulk_count: int = 4) -> Load:
    return Load((*urgent_jobs(), *bulk_jobs(bulk_rows_per_second, bulk_count)))


class PretendStand(Stand):
    """A stand whose runs are made up: latency by side and load. Its Spark takes IPQ4 in no form."""

    def __init__(self, folder: Path, pretend: Callable[[str, Load], Run], capacity: float = 100_000.0):
        super().__init__(folder, TIMES, lambda text: None, capacity)
        self.pretend = pretend
        self.asked: list[Times | None] = []
        self.released: list[str] = []

    def release(self, *sides: str, slots: int | None = None) -> None:
        self.released += sides

    def _try(self, load: Load, slots: int) -> dict[str, dict[str, str]]:
        forms = {"the query": "[NOT_YET] Not in append mode."}
        return {job.query: forms if job.query == "ipq4" else forms | {"totals": ""} for job in load.jobs}

    def run(self, side: str, load: Load, *, slots: int = SLOTS, times: Times | None = None) -> Run:
        self.asked.append(times)
        made = replace(self.pretend(side, load), slots=slots)
        self.runs.append(made)
        return made
