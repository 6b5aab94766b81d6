"""GI/G/k: M/M/k with the waiting scaled by how irregular arrivals and service are (DRS, equation 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

from penstock.model.mmk import MMk
from penstock.model.stage_model import check_number


@dataclass(frozen=True)
class GIGk:
    """E[T](k) = (a + s)/2 E[Q](M/M/k) + 1/mu, by Whitt's decomposition; exact for M/M/k and for M/G/1.

    >>> evenly = GIGk(0.5, 1.0, service_scv=0.0)  # M/D/1: half the waiting of M/M/1
    >>> evenly.sojourn_seconds(1), MMk(0.5, 1.0).sojourn_seconds(1)
    (1.5, 2.0)
    """

    rows_per_second: float
    """lambda."""
    slot_rows_per_second: float
    """mu."""
    arrival_scv: float = 1.0
    """a: variance over squared mean of the times between arrivals."""
    service_scv: float = 1.0
    """s: the same of service times."""

    def __post_init__(self) -> None:
        for what, value in (("arrivals", self.arrival_scv), ("service", self.service_scv)):
            check_number(f"the squared coefficient of variation of {what}", value, 0.0, "no spread is less")
        self.queue  # noqa: B018 -- refuses rates that cannot be

    @cached_property
    def queue(self) -> MMk:
        """The M/M/k queue of the same rates."""
        return MMk(self.rows_per_second, self.slot_rows_per_second)

    @property
    def busy_slots(self) -> float:
        return self.queue.busy_slots

    @property
    def floor_seconds(self) -> float:
        return self.queue.floor_seconds

    def sojourn_seconds(self, slots: int) -> float:
        """Equation 5."""
        return self.waiting_seconds(slots) + self.floor_seconds

    def waiting_seconds(self, slots: int) -> float:
        """(a + s)/2 E[Q](M/M/k); a queue that cannot keep up is endless even if nothing varies."""
        if slots <= self.busy_slots:
            return inf
        return (self.arrival_scv + self.service_scv) / 2.0 * self.queue.waiting_seconds(slots)
