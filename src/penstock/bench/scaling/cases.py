"""What is tried: emulated pipelines at a rate, with so many slots in all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from penstock.workloads.drs import TOPOLOGIES
from penstock.workloads.drs.inputs import Gaps

Slots = Mapping[str, int]
NEARLY = 1.05
"""What is within 5% of the best is as good."""


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


def every_allocation(stages: Sequence[str], slots: int) -> Iterator[dict[str, int]]:
    """All ways to share so many slots, at least one for each stage.

    >>> [shown(each) for each in every_allocation(["a", "b"], 4)]
    ['1:3', '2:2', '3:1']
    """
    for cuts in combinations(range(1, slots), len(stages) - 1):
        edges = (0, *cuts, slots)
        yield {name: end - begin for name, (begin, end) in zip(stages, pairwise(edges), strict=True)}


def distance(one: Slots, other: Slots) -> int:
    """L1: twice the slots that are elsewhere."""
    return sum(abs(slots - other[name]) for name, slots in one.items())


def neighbours(slots: Slots, count: int) -> list[dict[str, int]]:
    """The `count` nearest allocations of as many slots, and all that are as near as the last of them.

    >>> [shown(each) for each in neighbours({"a": 2, "b": 2}, 1)]
    ['1:3', '3:1']
    """
    others = [each for each in every_allocation(list(slots), sum(slots.values())) if each != dict(slots)]
    others.sort(key=lambda each: distance(slots, each))
    last = distance(slots, others[:count][-1]) if others else 0
    return [each for each in others if distance(slots, each) <= last]


CASES = (
    Case("vld", 5.0, 8, "uniform"),
    Case("vld", 8.0, 9, "uniform"),
    Case("vld", 24.0, 22, "uniform"),
    Case("fpd", 10.0, 6, "uniform"),
    Case("fpd", 20.0, 10, "uniform"),
    Case("fpd", 30.0, 13, "uniform"),
    Case("chain", 5.0, 6, "uniform"),
    Case("chain", 10.0, 9, "uniform"),
    Case("two-path", 8.0, 6, "uniform"),
    Case("two-path", 10.0, 8),
    Case("loop", 2.5, 4, "uniform"),
    Case("loop", 8.0, 7, "uniform"),
)
"""By the models the best places are better than any others by 8% or more here, whatever turns themselves
cost (50 to 140 ms), so that half a minute of measuring tells them. Four slots of a loop can be placed in
three ways only; all others have five neighbours and more."""
BURSTY = tuple(Case("vld", rate, 7, "uniform", scv=2.0, work=0.5) for rate in (5.0, 6.0))
"""With half the work: a turn takes as long as its slowest row, and seven slots could not do all of it."""
