"""One topology on both sides: the search for their highest rates, then steps in turn."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.bench.riot.steps import KEEPS_UP, Curve, Ladder, Step, climb
from penstock.bench.workers import Worker

MODULE = "penstock.bench.riot.worker"
OWN_POLICY = "longest-queue"
DRAIN_SECONDS = 60.0
# Where throughput alone is searched, steps are longer, as a queue may grow slowly.
LONG = 2.0


@dataclass(frozen=True)
class Times:
    """How long things take, in seconds, and how often the sides alternate."""

    warmup: float
    settle: float
    measured: float
    rounds: int
    refinements: int


@dataclass(frozen=True)
class Job:
    """What is to be measured of one topology."""

    topology: str
    start_rate: Mapping[str, float]
    policies: Sequence[str]
    consumptions: Sequence[str]
    fused: bool
    times: Times
    beyond: bool = False
    """Whether to search the highest rates that the sides keep up with, however late rows come out."""
    as_jobs: bool = False
    """Whether to measure ours also with every turn planned and run as a job, as plain Spark does."""


@dataclass
class Comparison:
    """What was measured of one topology."""

    job: Job
    plain: Curve
    ours: Curve
    in_turn: list[tuple[Step, Step]] = field(default_factory=list)
    """The rival and ours at the same rate, one after the other, several times."""
    policies: dict[str, Curve] = field(default_factory=dict)
    consumptions: dict[str, Curve] = field(default_factory=dict)
    fused: Curve | None = None
    at_most: list[tuple[Step, Step]] = field(default_factory=list)
    """The same at the highest rate that the rival keeps up with."""
    as_jobs: tuple[Curve, Step] | None = None
    """Ours with every turn run as a job: its curve, and its step at the rival's rate."""

    @property
    def plain_best(self) -> Step:
        """The rival at its highest rate or, where it held none, at the least that was tried."""
        return self.plain.highest or self.plain.least


class Measured:
    """A side's process, stopped by a signal whenever the other one is measured."""

    def __init__(
        self, job: Job, side: str, folder: Path, port: int, say: Callable[[str], None], *options: str
    ):
        self._job = job
        self._side = side
        self._say = say
        say(f"{job.topology}, {side}: starting")
        arguments = ("--side", side, "--topology", job.topology, "--port", str(port), *options)
        self._worker = Worker(MODULE, folder, *arguments)
        try:
            self._warm()
        except BaseException:
            self._worker.close()
            raise

    def _warm(self) -> None:
        job, start = self._job, self._job.start_rate[self._side]
        self._worker.ready()
        self._say(
            f"{job.topology}, {self._side}: warming up for {job.times.warmup:g} s at {start:,.0f} rows/s"
        )
        self._worker.ask(do="warm", rate=start, seconds=job.times.warmup)
        self.drain()

    def step(self, rate: float, what: str = "", longer: float = 1.0) -> Step:
        times = self._job.times
        seconds = times.measured * longer
        answer = self._worker.ask(do="step", rate=rate, settle=times.settle, seconds=seconds)
        step = Step.of(answer)
        verdict = "held" if step.held else "not held"
        self._say(
            f"{self._job.topology}, {what or self._side}: {rate:,.0f} rows/s, mean {step.mean:.3f} s, "
            f"p99 {step.p99:.2f} s, {verdict}"
        )
        if not step.held:
            self.drain()
        return step

    def climb(self, start: float, what: str = "", *, roughly: bool = False) -> Curve:
        """`roughly`: in fewer steps, for variants of what is measured well."""
        refined = min(self._job.times.refinements, 1) if roughly else self._job.times.refinements
        ladder = Ladder(start, refinements=refined, tries=1 if roughly else 2)
        curve = climb(ladder, lambda rate: self.step(rate, what))
        self.drain()
        return curve

    def beyond(self, curve: Curve) -> Curve:
        """The curve with what lies beyond it: up to the highest rate that the side keeps up with."""
        known = curve.highest_kept_up
        start = max(2 * known.rate if known else 0.0, 10 * self._job.start_rate["plain"])
        ladder = Ladder(start, factor=2.0, refinements=1, most=9, tries=1)
        what = f"{self._side}, throughput alone"
        more = climb(ladder, lambda rate: self.step(rate, what, LONG), KEEPS_UP)
        self.drain()
        return Curve(curve.steps + more.steps)

    def drain(self) -> None:
        self._worker.ask(do="drain", limit=DRAIN_SECONDS)

    def reschedule(self, policy: str, consumption: str = "all") -> None:
        self._worker.ask(do="reschedule", policy=policy, consumption=consumption)

    def fuse(self) -> None:
        self._worker.ask(do="fuse")

    def pause(self) -> None:
        os.killpg(self._worker.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.killpg(self._worker.pid, signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.go_on()
        self._worker.close()


def compare(job: Job, folder: Path, port: int, say: Callable[[str], None]) -> Comparison:
    """Runs the rival, then ours, then both in turn, then what else of ours is asked for."""
    with ExitStack() as sides:
        plain = sides.enter_context(Measured(job, "plain", folder, port, say))
        rival = plain.climb(job.start_rate["plain"])
        plain.pause()
        ours = sides.enter_context(Measured(job, "ours", folder, port, say))
        made = Comparison(job, rival, ours.climb(job.start_rate["ours"]))
        made.in_turn = [_both(plain, ours, made.plain_best.rate) for _ in range(job.times.rounds)]
        if job.beyond:
            _go_beyond(made, plain, ours)
        _variants(made, ours)
    if job.as_jobs:
        folder.joinpath("as-jobs").mkdir()
        with Measured(job, "ours", folder / "as-jobs", port, say, "--as-jobs") as planned:
            curve = planned.climb(job.start_rate["ours"] / 2, "every turn a job", roughly=True)
            made.as_jobs = curve, planned.step(made.plain_best.rate, "every turn a job")
    return made


def _go_beyond(made: Comparison, plain: Measured, ours: Measured) -> None:
    made.ours = ours.beyond(made.ours)
    ours.pause()
    plain.go_on()
    made.plain = plain.beyond(made.plain)
    plain.pause()
    ours.go_on()
    if most := made.plain.highest_kept_up:
        made.at_most = [_both(plain, ours, most.rate) for _ in range(made.job.times.rounds)]


def _both(plain: Measured, ours: Measured, rate: float) -> tuple[Step, Step]:
    ours.pause()
    plain.go_on()
    rival = plain.step(rate)
    plain.drain()
    plain.pause()
    ours.go_on()
    own = ours.step(rate)
    ours.drain()
    return rival, own


def _variants(made: Comparison, ours: Measured) -> None:
    best = made.ours.highest or made.ours.least
    for policy in made.job.policies:
        if policy != OWN_POLICY:
            ours.reschedule(policy)
            made.policies[policy] = ours.climb(best.rate * 0.6, policy, roughly=True)
    for consumption in made.job.consumptions:
        ours.reschedule(OWN_POLICY, consumption)
        made.consumptions[consumption] = ours.climb(best.rate * 0.4, consumption, roughly=True)
    if made.job.fused:
        ours.reschedule(OWN_POLICY)
        ours.fuse()
        ours.step(best.rate, "fused, warming up")
        made.fused = ours.climb(best.rate, "fused", roughly=True)
