"""How far simulated runs are from a measured one: p50 and p99 of the results of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from statistics import median

from penstock.bench.stats import quantile

SHARES = {"p50": 0.5, "p99": 0.99}
"""Of the results of a group, which are compared."""
Latencies = Mapping[str, Sequence[float]]
"""Seconds of each result, by group."""


@dataclass(frozen=True)
class Told:
    """One figure: as it was measured, and as simulated runs had told it."""

    name: str
    samples: int
    """Results that the measured one is of."""
    share: float
    measured: float
    told: float

    @property
    def error(self) -> float:
        """Off by so much, as a share of what was measured; infinite where one of both is not known."""
        known = self.measured > 0.0 and not isnan(self.told)
        return abs(self.told - self.measured) / self.measured if known else inf

    @property
    def enough(self) -> bool:
        """Whether a result lies beyond it: else it is but the largest that happened to be there.

        >>> [Told("p99", samples, 0.99, 1.0, 1.0).enough for samples in (48, 100)]
        [False, True]
        """
        return self.samples * (1.0 - self.share) >= 1.0 - 1e-9


def pooled(*runs: Latencies) -> Latencies:
    """The results of several runs as those of one.

    >>> pooled({"urgent": [1.0]}, {"urgent": [2.0, 3.0]})
    {'urgent': [1.0, 2.0, 3.0]}
    """
    return {group: [each for run in runs for each in run[group]] for group in runs[0]}


def compared(measured: Latencies, *expected: Latencies) -> list[Told]:
    """p50 and p99 of every group.

    Of several simulated runs the medians count: on a busy pool one turn more or less changes all that follow.

    >>> compared({"urgent": [1.0, 2.0, 3.0]}, {"urgent": [3.0]}, {"urgent": [1.0]}, {"urgent": [2.5]})[0]
    Told(name='urgent_p50', samples=3, share=0.5, measured=2.0, told=2.5)
    """
    return [
        Told(
            f"{group}_{name}",
            len(real),
            share,
            quantile(real, share),
            median(quantile(each[group], share) for each in expected),
        )
        for group, real in measured.items()
        for name, share in SHARES.items()
    ]
