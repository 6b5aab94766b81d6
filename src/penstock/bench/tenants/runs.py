"""What a run of one side showed, as the bench reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import linear_regression
from typing import Any

from penstock.bench.stats import Summary, quantile
from penstock.bench.tenants.load import Load
from penstock.bench.tenants.meter import Turn
from penstock.errors import PenstockError
from penstock.workloads.tenants.groups import Group, Job


@dataclass(frozen=True)
class JobRun:
    """One job of a run. Samples are (second of the run, latency, missing), one for each window."""

    job: Job
    samples: tuple[tuple[float, float, bool], ...]
    offered: float
    done: float
    done_by_second: tuple[float, ...]
    backlog_by_second: tuple[float, ...]
    """Seconds of input that wait, at each second of the measured part."""
    turns: tuple[Turn, ...] = ()
    """Of each, where the side has such; granted at a second of the run."""
    fed: tuple[tuple[float, int, float], ...] = ()
    """Of each message: the second at which it was due, its source, and the second at which it was fed."""

    @property
    def backlog_growth_per_minute(self) -> float:
        """Seconds of input by which the backlog grows in a minute, by a line through all of it.

        Batches make it go up and down by seconds, so that its two ends would tell little.
        """
        if len(self.backlog_by_second) < 2:
            return 0.0
        seconds = range(len(self.backlog_by_second))
        return 60.0 * linear_regression(seconds, self.backlog_by_second).slope

    @property
    def latencies(self) -> list[float]:
        return [latency for _, latency, _ in self.samples]


@dataclass(frozen=True)
class GroupRun:
    """The jobs of one group as one."""

    jobs: tuple[JobRun, ...]

    @property
    def latencies(self) -> list[float]:
        return [latency for each in self.jobs for latency in each.latencies]

    def latency(self, share: float) -> float:
        """The latency that `share` of all results do not exceed; not a number without results."""
        return quantile(self.latencies, share)

    @property
    def p50(self) -> float:
        return self.latency(0.5)

    @property
    def p99(self) -> float:
        return self.latency(0.99)

    @property
    def missing(self) -> int:
        return sum(missing for each in self.jobs for _, _, missing in each.samples)

    @property
    def in_time(self) -> float:
        """Share of the results within their target, of all that were due."""
        good = [
            not missing and latency <= each.job.target_seconds
            for each in self.jobs
            for _, latency, missing in each.samples
        ]
        return sum(good) / len(good) if good else math.nan

    @property
    def done(self) -> float:
        return sum(each.done for each in self.jobs)

    @property
    def offered(self) -> float:
        return sum(each.offered for each in self.jobs)

    def turns_within(self, begin: float, end: float) -> list[Turn]:
        """Those that were granted in these seconds of the run."""
        return [turn for each in self.jobs for turn in each.turns if begin <= turn.granted_at < end]

    @property
    def backlog_growth_per_minute(self) -> float:
        """Seconds of input a minute, in the job where it grows most."""
        return max((each.backlog_growth_per_minute for each in self.jobs), default=0.0)


@dataclass(frozen=True)
class Run:
    """All jobs of one side under one load."""

    side: str
    load: Load
    slots: int
    jobs: tuple[JobRun, ...]
    scheduler_seconds: float
    turn_seconds: float
    window_turns: tuple[int, ...]
    feeder_lag_seconds: float
    warmup: float
    measured: float
    cuts: tuple[int, int] = (0, 0)
    """Turns that were cut for another stage, and those of them that took longer than was predicted."""

    def group(self, group: Group) -> GroupRun:
        return GroupRun(tuple(each for each in self.jobs if each.job.group == group))

    @property
    def urgent(self) -> GroupRun:
        return self.group("urgent")

    @property
    def bulk(self) -> GroupRun:
        return self.group("bulk")

    @property
    def overhead_share(self) -> float:
        """Seconds of scheduling over seconds of turns."""
        return self.scheduler_seconds / self.turn_seconds if self.turn_seconds else math.nan

    @property
    def cuts_overran_share(self) -> float:
        """How often a turn that was cut took longer than was predicted."""
        made, overran = self.cuts
        return overran / made if made else math.nan

    @classmethod
    def of(cls, side: str, load: Load, slots: int, answer: Mapping[str, Any]) -> Run:
        """From the worker's answer; refuses one with a wrong value."""
        told = answer["jobs"]
        wrong = [text for each in told.values() for text in each["wrong"]]
        if wrong:
            raise PenstockError(
                f"all values at the sinks must be those of the batch computation, but on side {side!r} "
                f"{'; '.join(wrong[:3])}: the figures would mean nothing"
            )
        return cls(
            side=side,
            load=load,
            slots=slots,
            jobs=tuple(_job_run(job, told[job.name]) for job in load.jobs),
            scheduler_seconds=answer["scheduler_seconds"],
            turn_seconds=answer["turn_seconds"],
            window_turns=tuple(answer["window_turns"]),
            feeder_lag_seconds=answer["feeder_lag_seconds"],
            warmup=answer["warmup"],
            measured=answer["measured"],
            cuts=tuple(answer["cuts"]),
        )

    def __str__(self) -> str:
        urgent, bulk = self.urgent, self.bulk
        told = [f"urgent p50 {urgent.p50:.2f} s, p99 {urgent.p99:.2f} s, {urgent.in_time:.0%} in time"]
        if bulk.jobs:
            told.append(f"bulk {bulk.done / bulk.offered:.0%} done" if bulk.offered else "bulk nothing")
        if self.feeder_lag_seconds > 1.0:
            told.append(f"fed up to {self.feeder_lag_seconds:.1f} s late")
        return ", ".join(told)


def _job_run(job: Job, told: Mapping[str, Any]) -> JobRun:
    return JobRun(
        job,
        tuple((at, latency, missing) for at, latency, missing in told["samples"]),
        told["offered"],
        told["done"],
        tuple(told["done_by_second"]),
        tuple(told["backlog_by_second"]),
        tuple(Turn(*each) for each in told.get("turns", ())),
        tuple((due, source, at) for due, source, at in told.get("fed", ())),
    )


def ratio(rival: float, own: float) -> float:
    """How many times the rival's is ours; not a number where nothing can be said."""
    return rival / own if own > 0 else math.nan


def latency_ratio(rival: GroupRun, own: GroupRun, share: float) -> Summary:
    """Of all results of the group together; the range is that of the jobs, each against the same job."""
    each = [
        ratio(quantile(one.latencies, share), quantile(other.latencies, share))
        for one, other in zip(rival.jobs, own.jobs, strict=True)
    ]
    known = [value for value in each if math.isfinite(value)] or [math.nan]
    return Summary(ratio(rival.latency(share), own.latency(share)), min(known), max(known), 1)


def best_rival(runs: Sequence[Run], share: float) -> Run:
    """The rival whose urgent latency is the lesser at this share of results."""
    return min(runs, key=lambda run: run.urgent.latency(share))
