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


LEAST_SECONDS = 0.1
"""By which a turn must be longer or shorter than planned to matter."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a trigger goes by: the plan, and what was measured since."""

    now: float
    planned_at: float
    planned_rates: Mapping[str, float]
    """Of the stages that rows come to from outside."""
    rates: Mapping[str, Rate]
    planned_seconds: Mapping[str, float]
    """Of a turn of the planned rows, by stage, as the plan had it."""
    seconds: Mapping[str, float]
    """The same as known now."""
    products: int = 0
    """Turns that brought something to a sink since the plan was made."""


class Trigger(Protocol):
    """Decides when to plan anew."""

    def due(self, situation: Situation) -> str:
        """Why a new plan is due; "" while none is."""
        ...


@dataclass(frozen=True, slots=True)
class Conditional:
    """When rates or costs have left the range that the plan was made for: BatchIT's trigger.

    More rows count at once, by the quick rate; fewer only when they have been fewer for a while, as a plan
    for more rows still holds. So a load that comes in bursts is planned for by its bursts, once. A plan for
    longer turns holds as well: turns that have become shorter count when they take less than half.
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
        for stage, planned in situation.planned_seconds.items():
            now = situation.seconds.get(stage, planned)
            in_range = below * below * planned <= now <= above * planned
            if not in_range and abs(now - planned) > LEAST_SECONDS:
                return f"a turn of {stage} takes {now:.2f} s, planned with {planned:.2f}"
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


def parse_trigger(text: str) -> Trigger:
    """Reads `conditional`, `product`, or a period such as `10s`.

    >>> parse_trigger("10s")
    Every(seconds=10.0)
    """
    if text == "conditional":
        return Conditional()
    if text == "product":
        return EveryProduct()
    try:
        return Every(parse_positive(text, "the period of planning", "no plan would ever be made"))
    except PenstockError as error:
        raise PenstockError(
            f"planning must be 'conditional', 'product' or a period such as '10s', got {text!r}: "
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
