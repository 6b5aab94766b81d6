"""A step: one side at one rate for some seconds; and the search for the highest rate that a side holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from operator import attrgetter
from typing import Any

LATENCY_LIMIT_SECONDS = 1.0
# Queues grow where rows late in a step took so much longer than those early in it; a single one grows where
# so much of what comes to it stays, and that is more than a few input rows make, or a part of one turn.
GROWTH, GROWTH_SECONDS = 1.3, 0.1
STAYING_SHARE, FEW_INPUT_ROWS, FEW_SECONDS = 0.05, 2.0, 0.25
# Of the rows due; what one delivery may have left to the time after the step is not missed.
SHARE_PUBLISHED, DELIVERY_SECONDS = 0.9, 1.0


@dataclass(frozen=True)
class Step:
    """What one step measured. Latencies are in seconds, from a row's arrival until it is published."""

    rate: float
    mean: float
    p99: float
    early_mean: float
    late_mean: float
    published_share: float
    """Of the rows that are due at the sink by the topology's ratio."""
    seconds: float = 8.0
    published_per_second: float = 0.0
    stages: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    scheduler_seconds: float = 0.0
    scheduler_cpu_seconds: float = 0.0
    """The part of it in which a core worked: in the rest others had both."""
    turn_seconds: float = 0.0
    utilisation_cv: float | None = None
    weight_cv: float | None = None
    predicted_rate: float | None = None
    """The highest rate by equation 4 of EdgeWise, with the service rates of this step."""

    @property
    def growing(self) -> tuple[str, ...]:
        """The stages whose queue grew: more waited in the last third of the step than in the first."""
        return tuple(name for name, each in self.stages.items() if self._grew(each))

    def _grew(self, stage: Mapping[str, float]) -> bool:
        seconds = max(STAYING_SHARE * self.seconds * 2 / 3, FEW_INPUT_ROWS / self.rate, FEW_SECONDS)
        return stage["waiting_late"] - stage["waiting_early"] > stage["arrival"] * seconds

    @property
    def keeps_up(self) -> bool:
        """Whether no queue grows and as much comes out as goes in, however long rows take."""
        return (
            self.mean > 0.0
            and self.late_mean <= GROWTH * self.early_mean + GROWTH_SECONDS
            and self.published_share >= min(SHARE_PUBLISHED, 1.0 - DELIVERY_SECONDS / self.seconds)
            and not self.growing
        )

    @property
    def held(self) -> bool:
        """Whether it keeps up with a mean latency under one second."""
        return self.keeps_up and self.mean < LATENCY_LIMIT_SECONDS

    def wait_share(self, stage: str, *, strictly: bool = False) -> float:
        """A stage's part of the time that a row waits on its way, over all stages."""
        total = sum(waited(each, strictly) for each in self.stages.values())
        return waited(self.stages[stage], strictly) / total if total else 0.0

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Step:
        return cls(**answer)


def waited(stage: Mapping[str, float], strictly: bool = False) -> float:
    """Seconds that a row waits in a stage's queue until it is taken: the queue time of EdgeWise.

    There T_S is the time of the one row at the queue's head; here a turn takes a whole queue, so that
    what its rows wait for the pool is queue time too. `strictly` it is T_Q as Penstock divides it: only
    until the end of the last turn without the row.
    """
    return stage["queue_seconds"] if strictly else stage["queue_seconds"] + stage["schedule_seconds"]


def heaviest(steps: Sequence[Step]) -> str:
    """The stage that took the most slot time over all these steps; "" if there are none."""
    work: dict[str, float] = {}
    for step in steps:
        for name, each in step.stages.items():
            work[name] = work.get(name, 0.0) + each["slot_seconds"]
    return max(work, key=lambda name: work[name], default="")


HELD = attrgetter("held")
KEEPS_UP = attrgetter("keeps_up")


@dataclass(frozen=True)
class Ladder:
    """How rates are tried: from `start` up by `factor`, then `refinements` times halfway in between."""

    start: float
    factor: float = 1.6
    refinements: int = 2
    most: int = 14
    descents: int = 3
    tries: int = 2
    """How often a rate must fail on the way up: a pause of the machine must not end the search."""
    confirmations: int = 0
    """How many of the highest rates are run once more until one holds again: a single step may be luck."""
    least: float = 0.0
    """No lower rate is tried: what a handful of rows take says little."""


@dataclass(frozen=True)
class Curve:
    """The steps of one search, in the order they ran."""

    steps: tuple[Step, ...]

    @property
    def highest(self) -> Step | None:
        """The step at the highest rate held when it was last tried; None if none was."""
        return self._highest(HELD)

    @property
    def highest_kept_up(self) -> Step | None:
        """The step at the highest rate that the side keeps up with, however late its rows come out."""
        return self._highest(KEEPS_UP)

    def _highest(self, good_enough: Callable[[Step], bool]) -> Step | None:
        return max(filter(good_enough, self.by_rate), key=attrgetter("rate"), default=None)

    @property
    def least(self) -> Step:
        """The step at the least rate tried."""
        return min(self.steps, key=lambda step: step.rate)

    @property
    def by_rate(self) -> Sequence[Step]:
        """The last step at each rate: one that failed for want of compiled code is tried again."""
        last = {step.rate: step for step in self.steps}
        return [last[rate] for rate in sorted(last)]


def climb(
    ladder: Ladder, measure: Callable[[float], Step], good_enough: Callable[[Step], bool] = HELD
) -> Curve:
    """Searches the highest rate held, or good enough in another way.

    >>> wide = Ladder(start=100, factor=2, refinements=1)
    >>> made = lambda rate: Step(rate, 0.1 if rate < 500 else 2.0, 0.2, 0.1, 0.1, 1.0)
    >>> [round(step.rate) for step in climb(wide, made).steps]
    [100, 200, 400, 800, 800, 566]
    """
    steps = [measure(ladder.start)]
    while not good_enough(steps[-1]) and len(steps) <= ladder.descents and steps[-1].rate > ladder.least:
        steps.append(measure(max(steps[-1].rate / ladder.factor**2, ladder.least)))
    if not good_enough(steps[-1]):
        return Curve(tuple(steps))
    # A rate that failed on the way down is tried again: code may not have been compiled yet.
    good, bad = steps[-1].rate, 0.0
    while not bad and len(steps) < ladder.most:
        steps.append(measure(good * ladder.factor))
        if not good_enough(steps[-1]) and ladder.tries > 1:
            steps.append(measure(good * ladder.factor))
        good, bad = (steps[-1].rate, 0.0) if good_enough(steps[-1]) else (good, steps[-1].rate)
    for _ in range(ladder.refinements if bad else 0):
        steps.append(measure(sqrt(good * bad)))
        good, bad = (steps[-1].rate, bad) if good_enough(steps[-1]) else (good, steps[-1].rate)
    for _ in range(ladder.confirmations):
        tried = Curve(tuple(steps))
        best, least = tried._highest(good_enough), tried.least.rate
        if best is None and least <= ladder.least:
            break
        # Where none that was tried is held any more, a lower one may be.
        steps.append(measure(best.rate if best else max(least / ladder.factor, ladder.least)))
        if best and good_enough(steps[-1]):
            break
    return Curve(tuple(steps))


def higher(one: Curve, other: Curve) -> Curve:
    """The one of two searches that found the higher rate."""
    return max(one, other, key=lambda curve: curve.highest.rate if curve.highest else 0.0)
