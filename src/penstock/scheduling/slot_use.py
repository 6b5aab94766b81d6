"""Whether slots are scarce: how much of their time turns took of late."""

from __future__ import annotations

from math import exp

SECONDS, SCARCE = 5.0, 0.7


class SlotUse:
    """A running mean of the share of the slots in use; what was long ago counts less and less.

    >>> use = SlotUse()
    >>> use.changed(1.0, now=10.0)
    >>> use.is_scarce(12.0), use.is_scarce(20.0)
    (False, True)
    """

    def __init__(self) -> None:
        self._mean = self._share = 0.0
        self._at = 0.0

    def changed(self, share: float, now: float) -> None:
        """So much of the slots is in use from now on."""
        self._mean, self._share, self._at = self._mean_at(now), share, max(now, self._at)

    def is_scarce(self, now: float) -> bool:
        return self._mean_at(now) > SCARCE

    def _mean_at(self, now: float) -> float:
        old = exp(-max(now - self._at, 0.0) / SECONDS)
        return old * self._mean + (1.0 - old) * self._share
