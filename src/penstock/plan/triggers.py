"""When a new plan is due: on a condition, after every product, or on a period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.errors import PenstockError
from penstock.measure.rates import Rate
from penstock.pipeline.latency import parse_positive

PERIODS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
LEAST_ROWS = 20
"""What a quick look must have seen more than the plan expects before it means anything."""
MATTERS = 0.5
"""Of its target, what the delay of a product must come to for the costs of turns to matter."""
LATE = 1.1
"""The same, where it is late for certain: a plan may be as tight as 1."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What batches lead to, by what is known of costs."""

    ratio: float = 0.0
    """The largest of delay over target."""
    fits: bool = True
    """Whether the pool can do the work and hold the batches."""

    @property
    def holds(self) -> bool:
        return self.fits and self.ratio <= 1.0


@dataclass(frozen=True, slots=True)
class Situation:
    """What a trigger goes by: the plan, and what was measured since."""

    now: float
    planned_at: float
    planned_rates: Mapping[str, float]
    """Of the stages that rows come to from outside."""
    rates: Mapping[str, Rate]
    planned: Outlook
    """Of the batches, when the plan was made."""
    outlook: Outlook
    """Of the same batches and rates, by the costs as they are known now."""
    products: int = 0
    """Turns that brought something to a sink since the plan was made."""
    tuned_seconds: float = PERIODS[0]
    """The period that the history of arrivals asks for."""


class Trigger(Protocol):
    """Decides when to plan anew."""

    def due(self, situation: Situation) -> str:
        """Why a new plan is due; "" while none is."""
        ...


@dataclass(frozen=True, slots=True)
class Conditional:
    """When rates or costs have left the range that the plan was made for: BatchIT's trigger.

    More rows count at once, by the quick rate; fewer only when they have been fewer for a while, as a plan
    for more rows still holds. So a load that comes in bursts is planned for by its bursts, once. Costs count
    by what comes of them: a product late or nearly so, where the plan had time to spare, or the reverse.
    """

    tolerance: float = 0.5

    def due(self, situation: Situation) -> str:
        above, below = 1.0 + self.tolerance, 1.0 / (1.0 + self.tolerance)
        for stage, planned in situation.planned_rates.items():
            rate = situation.rates.get(stage)
            if rate is None:
                continue
            if rate.quick > above * planned and (rate.quick - planned) * 5.0 > LEAST_ROWS:
                return f"{rate.quick:,.0f} rows/s come to {stage}, planned for {planned:,.0f}"
            if max(rate.steady, rate.quick) < below * planned and (planned - rate.steady) * 30.0 > LEAST_ROWS:
                return f"only {rate.steady:,.0f} rows/s come to {stage}, planned for {planned:,.0f}"
        return self._by_costs(situation.planned, situation.outlook)

    def _by_costs(self, planned: Outlook, now: Outlook) -> str:
        above = 1.0 + self.tolerance
        longer = max(above * planned.ratio, MATTERS)
        if planned.ratio <= 1.0:
            longer = min(longer, LATE)
        shorter = planned.ratio / (above * above if planned.holds else above)
        if now.ratio > longer or (now.ratio < shorter and planned.ratio > MATTERS):
            told = f"a product takes {now.ratio:.0%} of its target, planned with {planned.ratio:.0%}"
            return f"by what turns cost now {told}"
        if planned.fits and not now.fits:
            return "by what turns cost now the slots are too few for the batches"
        return ""


@dataclass(frozen=True, slots=True)
class EveryProduct:
    """After every turn that brings something to a sink."""

    def due(self, situation: Situation) -> str:
        return "a product was made" if situation.products else ""


@dataclass(frozen=True, slots=True)
class Every:
    """On a fixed period."""

    seconds: float

    def due(self, situation: Situation) -> str:
        passed = situation.now - situation.planned_at
        return f"{self.seconds:g} s have passed" if passed >= self.seconds - 1e-6 else ""


@dataclass(frozen=True, slots=True)
class Tuned:
    """On a period that follows from how rows came over the last day (`tuned_seconds`)."""

    def due(self, situation: Situation) -> str:
        seconds = situation.tuned_seconds
        passed = Every(seconds).due(situation)
        return f"{passed}, the period tuned from history" if passed else ""


def parse_trigger(text: str) -> Trigger:
    """Reads `conditional`, `product`, `tuned`, or a period such as `10s`.

    >>> parse_trigger("10s")
    Every(seconds=10.0)
    """
    if text == "conditional":
        return Conditional()
    if text == "product":
        return EveryProduct()
    if text == "tuned":
        return Tuned()
    try:
        return Every(parse_positive(text, "the period of planning", "no plan would ever be made"))
    except PenstockError as error:
        raise PenstockError(
            f"planning must be 'conditional', 'product', 'tuned' or a period such as '10s', got {text!r}: "
            "nobody would know when to plan"
        ) from error


def tuned_seconds(counts: Sequence[float], tolerance: float = 0.5, misses: float = 0.05) -> float:
    """The longest period on which planning would have followed a day's load: tuned from history.

    `counts` are the rows of each second. In at most a share `misses` of the periods may the rate be beyond
    the tolerance of what the period before it was planned for.
    """
    best = PERIODS[0]
    for period in PERIODS:
        size = int(period)
        sums = [sum(counts[at : at + size]) for at in range(0, len(counts) - size + 1, size)]
        pairs = [(now, then) for now, then in zip(sums[1:], sums, strict=False) if now + then > LEAST_ROWS]
        if len(sums) < 3:
            break
        left = sum(not then / (1 + tolerance) <= now <= then * (1 + tolerance) for now, then in pairs)
        if left > misses * len(sums):
            break
        best = period
    return best
