"""What a differentially private release asks, and its one answer: charged, drawn once, and kept."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from penstock.errors import PenstockError
from penstock.operators.privacy.budget import Budget, Values, checked_epsilon
from penstock.operators.privacy.laplace import with_noise

GRID = 1 << 20
"""Values are counted in whole steps, so many of them in the largest a row may have: their sums are exact."""
EXHAUSTED = "budget exhausted"
ONE_GROUP = ("all",)
"""The groups of a release that is not by group."""


@dataclass(frozen=True)
class Sum:
    """Of one group: rows, and steps of the grid. Both bounded for each subject."""

    rows: int = 0
    steps: int = 0


Sums = Callable[[Mapping[int, frozenset[str]]], Mapping[int, Mapping[str, Sum]]]
"""By start of the window and by group: the sums over those subjects that are given for it, and no others."""


@dataclass(frozen=True)
class Question:
    """A product's question about each window; two that differ in anything are two releases."""

    kind: Literal["count", "sum", "mean"]
    product: str
    epsilon: float
    by: str | None
    groups: tuple[str, ...]
    window_seconds: float
    rows: int
    """Of one subject in one group of a release."""
    groups_each: int
    """Groups of a release that one subject counts in."""
    refuse: bool = True
    """Whether a release that nobody can pay is refused; if not, it is noise alone."""
    column: str | None = None
    bounds: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        epsilon = checked_epsilon(self.epsilon, f"epsilon of the product {self.product!r}")
        object.__setattr__(self, "epsilon", epsilon)
        if not self.groups or len(set(self.groups)) < len(self.groups):
            raise PenstockError(
                f"groups must be different texts, one or more, got {self.groups}: they are known "
                "beforehand, as a group that is there only with somebody in it would tell so"
            )
        for name, limit in (("rows", self.rows), ("groups_each", self.groups_each)):
            if limit < 1:
                raise PenstockError(f"{name} must be 1 or more, got {limit}: no subject would count")
        if self.by in ("window", "value", "reason") or (self.by is None and self.groups != ONE_GROUP):
            raise PenstockError(
                f"by must be a column of groups that is not called window, value or reason, got {self.by!r}: "
                "the groups could not be told apart"
            )
        low, high = self.bounds
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise PenstockError(
                f"bounds must be two finite numbers, the lower one first, got {self.bounds}: "
                "no noise could hide a value without bounds"
            )

    @property
    def step(self) -> float:
        """Of the grid, in the unit of the values."""
        low, high = self.bounds
        return ((high - low) / 2 if self.kind == "mean" else max(abs(low), abs(high))) / GRID

    @property
    def centre(self) -> float:
        """What is taken off each value: a mean needs less noise for values around zero."""
        return sum(self.bounds) / 2 if self.kind == "mean" else 0.0

    def release(self, start_micros: int) -> str:
        """The identity of the answer for one window."""
        text = json.dumps([asdict(self), start_micros], sort_keys=True)
        return f"{self.product} {hashlib.sha256(text.encode()).hexdigest()}"

    def noised(self, sums: Mapping[str, Sum]) -> Values:
        """A value for each group, in their order."""
        found = [sums.get(group, Sum()) for group in self.groups]
        rows = self.rows * min(self.groups_each, len(self.groups))
        if self.kind == "count":
            return with_noise([each.rows for each in found], rows, self.epsilon)
        share = self.epsilon if self.kind == "sum" else self.epsilon / 2
        steps = with_noise([each.steps for each in found], rows * GRID, share)
        if self.kind == "sum":
            return [each * self.step for each in steps]
        counts = with_noise([each.rows for each in found], rows, share)
        return [self._mean(total, n) for total, n in zip(steps, counts, strict=True)]

    def _mean(self, steps: int, rows: int) -> float:
        low, high = self.bounds
        return min(max(self.centre + steps * self.step / max(rows, 1), low), high)


def answers(
    budget: Budget, question: Question, asked: Mapping[int, Iterable[str]], sums: Sums
) -> dict[int, Values]:
    """The values of the release of each window (by its start), the same whenever they are asked for.

    They are null if no subject could pay. Every subject is charged before anything is drawn, and what is
    drawn is kept before it is given away.
    """
    releases = {start: question.release(start) for start in asked}
    charges = {
        start: budget.charge(releases[start], question.product, subjects, question.epsilon)
        for start, subjects in asked.items()
    }
    new = {start: charge for start, charge in charges.items() if charge.released is None}
    paid = {start: charge.admitted for start, charge in new.items() if charge.admitted}
    refused = {start for start, charge in new.items() if charge.refused and question.refuse}
    found = sums(paid) if paid else {}
    values = {start: charge.released for start, charge in charges.items() if charge.released is not None}
    for start in new:
        none = [None] * len(question.groups)
        drawn = none if start in refused else question.noised(found.get(start, {}))
        values[start] = budget.keep(releases[start], drawn)
    return values
