"""One topology on both sides: the search for their highest rates, then steps in turn."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.bench.riot.steps import KEEPS_UP, Curve, Ladder, Step, climb, higher
from penstock.bench.workers import Worker
from penstock.errors import PenstockError

MODULE = "penstock.bench.riot.worker"
OWN_POLICY = "longest-queue"
DRAIN_SECONDS, LAST_DRAIN_SECONDS = 60.0, 300.0
# Where throughput alone is searched, steps are longer, as a queue may grow slowly.
LONG = 2.0
# A rate that is low for both sides, and one that ours does not hold.
LOW_SHARE, LEAST_LOW_RATE, OVERLOAD = 0.1, 0.2, 1.3
# What a turn takes where utilisation is looked at. The paper's figure 8 is with at most 50; a turn of Spark
# has a fixed cost, so that ten times as many are needed for the rates looked at.
CONSTANT = "at-most-500"
# Steps of the other policies below where their search begins, for their curves.
LOW_STEPS = (0.05, 0.2)
ORDER_SEED = 11
LEAST_ROWS = 10.0


@dataclass(frozen=True)
class Times:
    """How long things take, in seconds, and how often."""

    warmup: float
    settle: float
    measured: float
    rounds: int
    """How often the sides alternate; at the rate that tells queue times, `queue_rounds`."""
    refinements: int
    queue_rounds: int = 1
    rows: float = 0.0
    """A step lasts until so many rows came, but no longer than `longest`."""
    longest: float = 0.0
    descents: int = 3
    confirmations: int = 0
    again: bool = False
    """Whether the rival is searched twice: the first time its code is cold."""

    def seconds(self, rate: float) -> float:
        """Of a step at that rate.

        >>> times = Times(warmup=50, settle=3, measured=8, rounds=3, refinements=2, rows=100, longest=40)
        >>> [times.seconds(rate) for rate in (1, 5, 1000)]
        [40, 20.0, 8]
        """
        return max(min(self.rows / rate, self.longest), self.measured)

    @property
    def least_rate(self) -> float:
        """At which a handful of rows come in the longest step; any, where steps are all the same."""
        return LEAST_ROWS / self.longest if self.longest else 0.0


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
    balance: bool = False
    """Whether to look at utilisation and queue times at a low and at a high rate, the same on both sides."""
    rates: Sequence[float] = ()
    """The rates to run, instead of a search."""
    instances: str = "one"
    """Of each operator: "one", or as many as on the "paper"."""


Pairs = list[tuple[Step, Step]]
"""The rival and ours at the same rate, one after the other, several times."""


@dataclass
class Comparison:
    """What was measured of one topology."""

    job: Job
    plain: Curve
    ours: Curve
    in_turn: Pairs = field(default_factory=list)
    """At the highest rate that the rival holds."""
    policies: dict[str, Curve] = field(default_factory=dict)
    """Those asked for, and at last our own once more: code grows warmer from search to search."""
    consumptions: dict[str, Curve] = field(default_factory=dict)
    fused: Curve | None = None
    at_most: Pairs = field(default_factory=list)
    """At the highest rate that the rival keeps up with."""
    low: Pairs = field(default_factory=list)
    """At a rate that is low for both; turns of ours take at most so many rows, as in the paper."""
    high: Pairs = field(default_factory=list)
    """The same at the highest rate that ours holds."""
    whole: Sequence[Step] = ()
    """Ours at both rates with turns that take all that waits."""
    overloaded: dict[str, list[Step]] = field(default_factory=dict)
    """Ours by policy at a rate that it does not hold, where shares of the pool differ from what is served."""
    as_jobs: tuple[Curve, Pairs] | None = None
    """Ours with every turn run as a job: its curve, and in turn with the rival at the rival's rate."""

    @property
    def plain_best(self) -> Step:
        """The rival at its highest rate or, where it held none, at the least that was tried."""
        return self.plain.highest or self.plain.least

    @property
    def again(self) -> Sequence[Step]:
        """The steps of the second search of our own policy, where there was one."""
        return self.policies[OWN_POLICY].steps if OWN_POLICY in self.policies else ()

    @property
    def ours_best(self) -> Step | None:
        """Ours at the highest rate of its searches, as the rival has two as well; None without any."""
        return higher(self.ours, self.policies.get(OWN_POLICY, self.ours)).highest


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

    def step(
        self, rate: float, what: str = "", seconds: float | None = None, *, patient: bool = False
    ) -> Step:
        """Lasts as the rate needs it, where no seconds are given; if `patient`, however old rows are."""
        times = self._job.times
        seconds = seconds or times.seconds(rate)
        request = {"rate": rate, "settle": times.settle, "seconds": seconds, "patient": patient}
        step = Step.of(self._worker.ask(do="step", **request))
        self._say(
            f"{self._job.topology}, {what or self._side}: {rate:,.3g} rows/s, mean {step.mean:.3f} s, "
            f"p99 {step.p99:.2f} s, {_verdict(step)}"
        )
        # Plain Spark lists all segments of its queues at every look, until they are removed.
        if not step.held or self._side == "plain":
            self.drain()
        return step

    def search(self) -> Curve:
        """The curve of a side: the highest rate it holds, or the rates that were asked for."""
        job = self._job
        if job.rates:
            curve = Curve(tuple(self.step(rate) for rate in job.rates))
            self.drain()
            return curve
        if self._side == "ours" or not job.times.again:
            return self.climb(job.start_rate[self._side])
        cold = self._climb(self._ladder(job.start_rate["plain"]), "plain, cold", job.times.measured)
        return higher(cold, self.climb((cold.highest or cold.least).rate))

    def climb(
        self, start: float, what: str = "", *, roughly: bool = False, low_steps: Sequence[float] = ()
    ) -> Curve:
        """`roughly`: in fewer steps, for variants of what is measured well; `low_steps` come before."""
        low = tuple(self.step(rate, what) for rate in low_steps)
        return Curve(low + self._climb(self._ladder(start, roughly=roughly), what).steps)

    def _climb(self, ladder: Ladder, what: str, seconds: float | None = None) -> Curve:
        curve = climb(ladder, lambda rate: self.step(rate, what, seconds))
        self.drain()
        return curve

    def _ladder(self, start: float, *, roughly: bool = False) -> Ladder:
        times = self._job.times
        if roughly:
            return Ladder(
                start,
                refinements=min(times.refinements, 1),
                tries=1,
                descents=times.descents,
                least=times.least_rate,
            )
        return Ladder(
            start,
            refinements=times.refinements,
            descents=times.descents,
            confirmations=times.confirmations,
            least=times.least_rate,
        )

    def beyond(self, curve: Curve) -> Curve:
        """The curve with what lies beyond it: up to the highest rate that the side keeps up with."""
        known = curve.highest_kept_up
        start = max(2 * known.rate if known else 0.0, self._job.start_rate["beyond"])
        ladder = Ladder(start, factor=2.0, refinements=1, most=9, tries=1)
        what = f"{self._side}, throughput alone"
        seconds = LONG * self._job.times.measured
        more = climb(ladder, lambda rate: self.step(rate, what, seconds), KEEPS_UP)
        self.drain()
        return Curve(curve.steps + more.steps)

    def warm(self, rate: float) -> None:
        self._worker.ask(do="warm", rate=rate, seconds=self._job.times.warmup)
        self.drain()

    def drain(self) -> None:
        """Lets everything come out: what is left would be measured in the next step."""
        if self._worker.ask(do="drain", limit=DRAIN_SECONDS)["done"]:
            return
        self._say(f"{self._job.topology}, {self._side}: rows still wait after {DRAIN_SECONDS:g} s")
        if not self._worker.ask(do="drain", limit=LAST_DRAIN_SECONDS)["done"]:
            raise PenstockError(
                f"all rows must come out before the next step, but {self._job.topology}, {self._side} was "
                f"not done after another {LAST_DRAIN_SECONDS:g} s: the next step would be measured with old "
                "rows; run it with lower --rates"
            )

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


def _verdict(step: Step) -> str:
    if step.held:
        return "held"
    return f"not held, growing: {', '.join(step.growing)}" if step.growing else "not held"


def compare(job: Job, folder: Path, port: int, say: Callable[[str], None]) -> Comparison:
    """Runs the rival, then ours, then both in turn, then what else of ours is asked for."""
    options = ("--instances", job.instances)
    with Measured(job, "plain", folder, port, say, *options) as plain:
        rival = plain.search()
        plain.pause()
        with Measured(job, "ours", folder, port, say, *options) as ours:
            made = Comparison(job, rival, ours.search())
            made.in_turn = _in_turn(plain, ours, made.plain_best.rate, job.times.rounds)
            if job.beyond:
                _go_beyond(made, plain, ours)
            if job.balance:
                _look_at_balance(made, plain, ours)
            _variants(made, ours)
        if job.as_jobs:
            folder.joinpath("as-jobs").mkdir()
            with Measured(job, "ours", folder / "as-jobs", port, say, *options, "--as-jobs") as planned:
                curve = planned.climb(job.start_rate["ours"] / 2, "every turn a job", roughly=True)
                made.as_jobs = curve, _in_turn(plain, planned, made.plain_best.rate, job.times.rounds)
    return made


def _go_beyond(made: Comparison, plain: Measured, ours: Measured) -> None:
    made.ours = ours.beyond(made.ours)
    ours.pause()
    plain.go_on()
    made.plain = plain.beyond(made.plain)
    plain.pause()
    ours.go_on()


def _look_at_balance(made: Comparison, plain: Measured, ours: Measured) -> None:
    """Both sides at the same low and the same high rate; the rival need not hold the high one."""
    times = made.job.times
    if most := made.plain.highest_kept_up:
        seconds = LONG * times.seconds(most.rate)
        made.at_most = _in_turn(plain, ours, most.rate, times.queue_rounds, seconds)
    low = max(LOW_SHARE * (most or made.plain_best).rate, LEAST_LOW_RATE)
    ours.reschedule(OWN_POLICY, CONSTANT)
    made.low = _in_turn(plain, ours, low, times.rounds, LONG * times.seconds(low))
    if (best := made.ours.highest) is not None:
        seconds = LONG * times.seconds(best.rate)
        made.high = _in_turn(plain, ours, best.rate, times.rounds, seconds, patient=True)
    ours.reschedule(OWN_POLICY)
    if best is None:
        return
    made.whole = tuple(ours.step(rate, "all that waits") for rate in (low, best.rate))
    for policy in ("random", OWN_POLICY):
        ours.reschedule(policy)
        made.overloaded[policy] = [
            ours.step(OVERLOAD * best.rate, f"{policy}, too much", patient=True) for _ in range(times.rounds)
        ]


def _in_turn(
    plain: Measured,
    ours: Measured,
    rate: float,
    rounds: int,
    seconds: float | None = None,
    *,
    patient: bool = False,
) -> Pairs:
    """Each side at the rate while the other one rests; at the end ours runs."""
    made = []
    for _ in range(rounds):
        ours.pause()
        plain.go_on()
        rival = plain.step(rate, "", seconds, patient=patient)
        plain.pause()
        ours.go_on()
        made.append((rival, ours.step(rate, "", seconds, patient=patient)))
        ours.drain()
    return made


def _variants(made: Comparison, ours: Measured) -> None:
    best = made.ours.highest or made.ours.least
    others = [policy for policy in made.job.policies if policy != OWN_POLICY]
    for policy in (*others, OWN_POLICY) if others else ():
        ours.reschedule(policy)
        low = [share * best.rate for share in LOW_STEPS]
        roughly = policy != OWN_POLICY
        made.policies[policy] = ours.climb(best.rate * 0.6, policy, roughly=roughly, low_steps=low)
    made.consumptions = _consumptions(made.job, ours, best.rate)
    if made.job.fused:
        ours.reschedule(OWN_POLICY)
        ours.fuse()
        ours.warm(best.rate)
        made.fused = ours.climb(best.rate, "fused")


def _low_enough(consumption: str) -> float:
    """Rows a second that do not take minutes to come out again: with few of them a turn, rates are low.

    >>> [_low_enough(each) for each in ("all", "half", "at-most-50")]
    [inf, inf, 50.0]
    """
    return float(consumption.removeprefix("at-most-")) if consumption.startswith("at-most-") else inf


def _consumptions(job: Job, ours: Measured, best_rate: float) -> dict[str, Curve]:
    """In any order, so that none is always the coldest."""
    shuffled = random.Random(ORDER_SEED).sample(job.consumptions, len(job.consumptions))
    found = {}
    for consumption in shuffled:
        ours.reschedule(OWN_POLICY, consumption)
        found[consumption] = ours.climb(min(best_rate * 0.4, _low_enough(consumption)), consumption)
    return {name: found[name] for name in job.consumptions}
