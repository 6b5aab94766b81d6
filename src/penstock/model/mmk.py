"""M/M/k: Poisson arrivals, exponential service, k slots and one queue (DRS, equations 1 to 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

from penstock.model.stage_model import check_number


@dataclass(frozen=True)
class MMk:
    """E[T](k) = E[Q](M/M/k) + 1/mu.

    >>> stage = MMk(rows_per_second=10.0, slot_rows_per_second=4.0)
    >>> [round(stage.sojourn_seconds(k), 4) for k in (2, 3, 4, 10)]
    [inf, 0.6011, 0.3033, 0.25]
    """

    rows_per_second: float
    """lambda: rows that arrive."""
    slot_rows_per_second: float
    """mu: rows that one slot can process."""

    def __post_init__(self) -> None:
        check_number("an arrival rate", self.rows_per_second, 0.0, "no queue could be told")
        check_number(
            "the rate of a slot", self.slot_rows_per_second, 0.0, "no row would ever be done", above=True
        )

    @cached_property
    def busy_slots(self) -> float:
        """lambda / mu, k times the utilisation rho."""
        return self.rows_per_second / self.slot_rows_per_second

    @property
    def floor_seconds(self) -> float:
        return 1.0 / self.slot_rows_per_second

    def sojourn_seconds(self, slots: int) -> float:
        """Equation 1."""
        return self.waiting_seconds(slots) + self.floor_seconds

    def waiting_seconds(self, slots: int) -> float:
        """E[Q](M/M/k), equation 2: the chance to wait, over the speed at which a full queue empties."""
        if slots <= self.busy_slots:
            return inf
        # Not k mu - lambda, which may be rounded to nothing where k is just more than lambda/mu.
        return self.waiting_share(slots) / ((slots - self.busy_slots) * self.slot_rows_per_second)

    def waiting_share(self, slots: int) -> float:
        """Erlang C: the share of rows that find all slots busy. Equals equations 2 and 3.

        >>> round(MMk(1.0, 1.0).waiting_share(2), 4)
        0.3333
        """
        if slots <= self.busy_slots:
            return 1.0
        blocked, utilisation = self._blocked(slots), self.busy_slots / slots
        return blocked / (1.0 - utilisation * (1.0 - blocked))

    def _blocked(self, slots: int) -> float:
        """Erlang B by B(k) = r B(k-1) / (k + r B(k-1)): no power, no factorial, each step kept.

        So one more slot costs one step, and 10,000 slots overflow nowhere.
        """
        known, offered = self._blocked_by_slots, self.busy_slots
        for number in range(len(known), slots + 1):
            share = offered * known[-1]
            known.append(share / (number + share))
        return known[slots]

    @cached_property
    def _blocked_by_slots(self) -> list[float]:
        return [1.0]
