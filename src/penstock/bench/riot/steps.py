"""A step: one side at one rate for some seconds; and the search for the highest rate that a side holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from operator import attrgetter
from typing import Any

LATENCY_LIMIT_SECONDS = 1.0
# A queue grows where rows late in a step waited so much longer than those early in it.
GROWTH, GROWTH_SECONDS = 1.3, 0.1
# STATS publishes 10 of its 15 rows until each of its series has eleven values.
LEAST_SHARE_PUBLISHED = 0.6
SHARE_THAT_KEEPS_UP = 0.9


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
    published_per_second: float = 0.0
    stages: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    scheduler_seconds: float = 0.0
    turn_seconds: float = 0.0
    utilisation_cv: float | None = None
    weight_cv: float | None = None
    predicted_rate: float | None = None
    """The highest rate by equation 4 of EdgeWise, with the service rates of this step."""

    @property
    def stable(self) -> bool:
        """Whether no queue grows, however long rows take."""
        return (
            self.mean > 0.0
            and self.late_mean <= GROWTH * self.early_mean + GROWTH_SECONDS
            and self.published_share >= LEAST_SHARE_PUBLISHED
        )

    @property
    def held(self) -> bool:
        """Whether it is stable with a mean latency under one second."""
        return self.stable and self.mean < LATENCY_LIMIT_SECONDS

    @property
    def keeps_up(self) -> bool:
        """Whether as much comes out as goes in, however late."""
        return self.stable and self.published_share >= SHARE_THAT_KEEPS_UP

    @property
    def heaviest(self) -> str:
        """The stage with the most work: arrival over service rate."""
        loads = {
            name: each["arrival"] / each["service"] for name, each in self.stages.items() if each["service"]
        }
        return max(loads, key=lambda name: loads[name], default="")

    def queue_share(self, stage: str) -> float:
        """A stage's part of the queue time that a row meets on its way, T_Q over all stages."""
        total = sum(each["queue_seconds"] for each in self.stages.values())
        return self.stages[stage]["queue_seconds"] / total if total else 0.0

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Step:
        return cls(**answer)


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


@dataclass(frozen=True)
class Curve:
    """The steps of one search, in the order they ran."""

    steps: tuple[Step, ...]

    @property
    def highest(self) -> Step | None:
        """The step at the highest rate held; None if none was."""
        return max((step for step in self.steps if step.held), key=lambda step: step.rate, default=None)

    @property
    def highest_kept_up(self) -> Step | None:
        """The step at the highest rate that the side keeps up with, however late its rows come out."""
        return max((step for step in self.steps if step.keeps_up), key=lambda step: step.rate, default=None)

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
    while not good_enough(steps[-1]) and len(steps) <= ladder.descents:
        steps.append(measure(steps[-1].rate / ladder.factor**2))
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
    return Curve(tuple(steps))
