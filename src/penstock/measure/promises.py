"""Whether what a tenant was promised is kept, and what would help where it is not."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.pipeline.latency import format_seconds

ENOUGH_IN_TIME = 0.95
BUSY = 0.9


@dataclass(frozen=True)
class Kept:
    """How a target was kept for a while: at one sink, by the turns on the longest way to it."""

    tenant: str
    sink: str
    target_seconds: float
    results: float
    in_time: float
    path_seconds: float
    """What the turns on the way to the sink take, one after the other, at the sizes they have."""
    slots: int
    busy: float
    """The share of the pool's time that turns took, from 0 to 1."""
    overdue_seconds: float = 0.0
    """How far work that still waits on the way to the sink is beyond its target now; 0 if it is not."""

    @property
    def stuck(self) -> bool:
        """Whether results are missing that should have come: latency is only known of those that came."""
        return self.overdue_seconds > (self.target_seconds if self.results else 0.0)


def unmet(kept: Kept) -> str | None:
    """What is wrong and what would help, in one sentence; None where the promise is kept.

    >>> slow = Kept("ads", "out", 0.8, results=100, in_time=0.5, path_seconds=1.2, slots=2, busy=0.4)
    >>> print(unmet(slow))
    tenant 'ads' has 50% of its results at sink 'out' within 800 ms: its turns alone take 1.2 s; fuse its \
stages, give them more slots each, or promise 2.4 s
    """
    late = kept.results > 0 and kept.in_time < ENOUGH_IN_TIME
    if not late and not kept.stuck:
        return None
    begin = (
        f"tenant {kept.tenant!r} has {kept.in_time:.0%} of its results at sink {kept.sink!r} within "
        f"{format_seconds(kept.target_seconds)}: "
    )
    if not late:
        begin = (
            f"tenant {kept.tenant!r} has work for sink {kept.sink!r} that waits, "
            f"{format_seconds(round(kept.overdue_seconds, 1))} beyond its target of "
            f"{format_seconds(kept.target_seconds)} already, and "
            f"{f'{kept.results:,.0f}' if kept.results else 'no'} results came of late: "
        )
    if kept.path_seconds > kept.target_seconds:
        return begin + (
            f"its turns alone take {format_seconds(round(kept.path_seconds, 2))}; fuse its stages, give them "
            f"more slots each, or promise {format_seconds(round(2 * kept.path_seconds, 1))}"
        )
    if kept.busy > BUSY:
        return begin + (
            f"the {kept.slots} slots are busy for {kept.busy:.0%} of the time; more slots would help, a "
            "smaller grain, or less load of the patient tenants"
        )
    return begin + (
        "its rows wait though slots are free; see `penstock explain` for its stages, and look for turns of "
        "other tenants that are longer than its target (a smaller grain cuts them)"
    )
