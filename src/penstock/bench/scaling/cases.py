"""What is tried: emulated pipelines at a rate, with so many slots in all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

from penstock.workloads.drs import TOPOLOGIES
from penstock.workloads.drs.inputs import Gaps

Slots = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """A pipeline, how fast inputs come, and how many slots there are."""

    topology: str
    inputs_per_second: float
    most_slots: int
    gaps: Gaps = "poisson"
    scv: float | None = None
    """Of service times that vary; None: as the pipeline declares them."""
    work: float = 1.0
    """Times as long as declared rows take."""

    @property
    def name(self) -> str:
        return f"{self.topology} {self.inputs_per_second:g}/s K={self.most_slots}"

    @property
    def stages(self) -> tuple[str, ...]:
        return tuple(TOPOLOGIES[self.topology].stages)

    @property
    def first_slots(self) -> dict[str, int]:
        """Where it begins: enough for what is declared and a half more, then one after the other in turn."""
        declared = TOPOLOGIES[self.topology].stages
        slots = {
            name: int(1.5 * self.work * self.inputs_per_second * each.rows * each.row_seconds) + 1
            for name, each in declared.items()
        }
        waiting = [name for name, each in declared.items() if each.row_seconds > 0.0]
        while sum(slots.values()) > self.most_slots:
            slots[max(waiting, key=lambda name: slots[name])] -= 1
        for place in range(self.most_slots - sum(slots.values())):
            slots[waiting[place % len(waiting)]] += 1
        return slots


def shown(slots: Slots) -> str:
    """As in the paper.

    >>> shown({"extract": 10, "match": 11, "aggregate": 1})
    '10:11:1'
    """
    return ":".join(str(each) for each in slots.values())


def neighbours(slots: Slots) -> list[dict[str, int]]:
    """The allocations of as many slots with one of them elsewhere: at L1 distance 2, the least there is.

    >>> [shown(each) for each in neighbours({"a": 2, "b": 1})]
    ['1:2']
    """
    found = []
    for giver, taker in permutations(slots, 2):
        if slots[giver] > 1:
            found.append({**slots, giver: slots[giver] - 1, taker: slots[taker] + 1})
    return found


CASES = (
    Case("vld", 5.0, 8, "uniform"),
    Case("vld", 8.0, 9, "uniform"),
    Case("vld", 24.0, 22, "uniform"),
    Case("fpd", 10.0, 6, "uniform"),
    Case("fpd", 20.0, 10, "uniform"),
    Case("fpd", 30.0, 13, "uniform"),
    Case("chain", 5.0, 6, "uniform"),
    Case("chain", 10.0, 9, "uniform"),
    Case("two-path", 4.0, 5, "uniform"),
    Case("two-path", 10.0, 8),
    Case("loop", 2.5, 4, "uniform"),
    Case("loop", 8.0, 7, "uniform"),
)
"""By the models the best places are better than any others by 8% or more here, whatever turns themselves
cost (50 to 140 ms), so that half a minute of measuring tells them."""
BURSTY = tuple(Case("vld", rate, 7, "uniform", scv=2.0, work=0.5) for rate in (5.0, 6.0))
"""With half the work: a turn takes as long as its slowest row, and seven slots could not do all of it."""
