"""What the controller of slots goes by, what it remembers, and what it decides: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Literal

from penstock.errors import PenstockError
from penstock.model.network import Network
from penstock.plan.slots import SlotPlan

Problem = Literal["least-latency", "fewest-slots"]
"""Of DRS: (6), the least E[T] with K_max slots; (8), the fewest slots with E[T] of at most T_max."""
Kind = Literal["more", "fewer", "placed"]

RISING = 1.25


@dataclass(frozen=True)
class SlotSettings:
    """What is wanted, and how readily slots are changed for it."""

    problem: Problem
    most_slots: int
    """K_max."""
    target_seconds: float = inf
    """T_max: measured above it, there are too few slots."""
    relaxed_seconds: float = 0.0
    """T_min: measured below it, there are too many."""
    between_seconds: float = 180.0
    """T_ra: the least time between two changes."""
    window: int = 3
    """w: measurements that are averaged, all of them made since the last change."""
    scale_down_seconds: float = 300.0
    """For so long must there have been too many before slots are taken away."""
    headroom: float = 0.2
    """Of T_max, what a plan leaves for chance."""
    worthwhile: float = 0.05
    """By what share E[T] must become less for slots to be placed anew."""

    def __post_init__(self) -> None:
        self._must(
            self.problem in ("least-latency", "fewest-slots"), "problem", self.problem, "none is known"
        )
        self._must(self.most_slots >= 1, "most_slots", self.most_slots, "no stage could run")
        self._must(self.window >= 1, "window", self.window, "nothing would be measured")
        for name in ("between_seconds", "scale_down_seconds"):
            value = getattr(self, name)
            self._must(value >= 0.0, name, value, "no time passes backwards")
        for name in ("headroom", "worthwhile"):
            value = getattr(self, name)
            self._must(0.0 <= value < 1.0, name, value, "it is a share")
        if self.problem == "fewest-slots":
            self._must(
                0.0 < self.target_seconds < inf, "target_seconds", self.target_seconds, "it says enough"
            )
            aim, relaxed = self.aim_seconds, self.relaxed_seconds
            self._must(0.0 <= relaxed < aim, "relaxed_seconds", relaxed, f"plans aim at {aim:.4g} s")

    @property
    def aim_seconds(self) -> float:
        """What plans are made for."""
        return self.target_seconds * (1.0 - self.headroom)

    def _must(self, holds: bool, name: str, value: object, follows: str) -> None:
        if not holds:
            raise PenstockError(
                f"{name} of a controller of slots must be {_RULES[name]}, got {value}: {follows}"
            )


_RULES = {
    "problem": "'least-latency' or 'fewest-slots'",
    "most_slots": "at least 1",
    "window": "at least 1",
    "between_seconds": "0 or more",
    "scale_down_seconds": "0 or more",
    "headroom": "0 or more and less than 1",
    "worthwhile": "0 or more and less than 1",
    "target_seconds": "positive and finite",
    "relaxed_seconds": "0 or more and below what plans aim at",
}


@dataclass(frozen=True)
class SlotObservation:
    """One look: models by rates as smoothed by now, slots as they are, and E[T^] since the last look."""

    now: float
    network: Network
    slots: Mapping[str, int]
    measured_seconds: float
    """Mean total sojourn time of the inputs done since the last look; any number where there were none."""
    inputs_done: int = 1
    surge: float = 1.0
    """What came since the last look, as a multiple of the smoothed rates that `network` goes by."""
    latest_surge: float = 0.0
    """The same of what came just before this look."""
    behind_seconds: float = 0.0
    """What an input that comes now is in for, as fast as inputs got done since the last look."""

    @property
    def late_seconds(self) -> float:
        """What was measured of inputs that are done, or is to be seen of those that are not."""
        return max(self.measured_seconds if self.inputs_done else 0.0, self.behind_seconds)

    @property
    def rising(self) -> bool:
        """Whether more came just before this look than on average since the last: it may become more yet."""
        return self.latest_surge > RISING * self.surge

    @cached_property
    def coming(self) -> Network:
        """`network` at the rates since the last look: smoothed ones are still on their way there."""
        surge = max(self.surge, self.latest_surge)
        return self.network.scaled(surge) if surge > 0.0 else self.network


@dataclass(frozen=True)
class Hold:
    """Nothing changes."""

    reason: str


@dataclass(frozen=True)
class Rescale:
    """Slots change to those of `plan`."""

    kind: Kind
    plan: SlotPlan
    reason: str


@dataclass(frozen=True)
class Visit:
    """An allocation that was left, and what was measured under which load."""

    slots: Mapping[str, int]
    busy_slots: float
    measured_seconds: float
    times: int = 1
    """How often it was left in a row for better places: each time it takes more to go back."""

    @property
    def total(self) -> int:
        return sum(self.slots.values())


@dataclass(frozen=True)
class SlotState:
    """What is remembered between looks; `SlotState(slots, now)` at the start."""

    slots: Mapping[str, int]
    changed_at: float
    samples: tuple[float, ...] = ()
    """Measured since the last change, at most w."""
    short_looks: int = 0
    """For how many looks in a row the mean has been over T_max."""
    swamped_looks: int = 0
    """For how many looks in a row slots could not keep up with what came, and rows were late."""
    low_since: float = inf
    """Since when there have been too many slots."""
    low_needed: tuple[int, ...] = ()
    """What was needed at each look since then, at most w."""
    better: Mapping[str, int] | None = None
    """Where slots would be placed rather, and for how many looks in a row."""
    better_looks: int = 0
    pairs: tuple[tuple[float, float], ...] = ()
    """Estimated and measured E[T]."""
    left: tuple[Visit, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.slots.values())

    @property
    def mean_seconds(self) -> float:
        """Over the window; inf before the first sample."""
        return sum(self.samples) / len(self.samples) if self.samples else inf
