"""Slots for each stage: DRS's AssignProcessors and MinProcessors (Algorithms 1 and 2), with a heap.

Two slips of the printed listings are mended. Algorithm 1 loops while the sum is at most K_max, and so hands
out one processor too many: here it loops while the sum is below K_max. Algorithm 2 takes sum(1/mu_i) for the
least E[T]; by equation 4 that is (1/lambda_0) sum(lambda_i/mu_i). Two departures: slots that help nowhere
stay free, and Algorithm 2 goes on from its last allocation rather than calling Algorithm 1 anew for each K,
which leads to the same allocations in O((K + N) log N). Both are optimal where every E[T_i] is convex in k.
Where one falls by steps, slots are given some at a time, which is nearly optimal. Where stages depend
on each other (`TurnNetwork`), slots are then moved one by one for as long as that helps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapify, heapreplace
from math import inf

from penstock.errors import PenstockError
from penstock.model.network import Network, spared
from penstock.plan.moved_slots import WORTH, Slots, best_moved
from penstock.plan.slot_errors import TargetOutOfReachError, TooFewSlotsError

MOST_SLOTS = 10_000
"""Beyond which no allocation is looked for."""
AHEAD = 8
"""Slots that are looked ahead for where a model falls by steps."""
DRIFT = 1e-10
"""Of the first E[T], by what a sum of that many differences may be wrong."""


@dataclass(frozen=True)
class SlotPlan:
    """Slots by stage, and what the models say of them."""

    slots: Mapping[str, int]
    sojourn_seconds: float
    """E[T] of an input."""
    stage_seconds: Mapping[str, float]
    """E[T_i] of a row at each stage, without its weight."""
    helps_most: str
    """The stage where one more slot would shorten E[T] most."""
    gain_seconds: float
    """By how much."""
    bottleneck: str
    """The stage that would be the first not to keep up if more came."""
    bottleneck_utilisation: float
    reason: str

    @property
    def total(self) -> int:
        return sum(self.slots.values())


def assign_processors(network: Network, most_slots: int) -> SlotPlan:
    """At most `most_slots` slots, placed for the least E[T]: problem (6).

    >>> from penstock.model import MMk, NetworkStage
    >>> stages = (NetworkStage("sift", MMk(13.0, 1.75)), NetworkStage("match", MMk(13.0, 1.5)))
    >>> assign_processors(Network(stages), 21).slots
    {'sift': 10, 'match': 11}
    """
    greedy = _Greedy(network, most_slots)
    while greedy.total < most_slots and greedy.best_gain > 0.0:
        greedy.give()
    free = most_slots - greedy.total
    left = f"; {free} more would help nowhere" if free else ""
    plan = greedy.plan(f"the least E[T] that {most_slots} slots lead to{left}")
    return plan if network.separable else judge(network, _grown(network, plan.slots, most_slots), plan.reason)


def min_processors(network: Network, target_seconds: float, most_slots: int = MOST_SLOTS) -> SlotPlan:
    """The fewest slots with which E[T] is at most `target_seconds`: problem (8)."""
    if not target_seconds > 0.0:
        raise PenstockError(
            f"latency target must be positive, got {target_seconds} s: no slots could meet it"
        )
    if target_seconds < network.floor_seconds:
        raise TargetOutOfReachError(target_seconds, network, None)
    greedy = _Greedy(network, most_slots)
    while not greedy.meets(target_seconds):
        if greedy.total >= most_slots or not greedy.best_gain > 0.0:
            if not network.separable:
                break
            raise TargetOutOfReachError(target_seconds, network, greedy.plan("the most there are"))
        greedy.give()
    plan = greedy.plan(f"the fewest slots with E[T] of at most {target_seconds:.4g} s")
    if network.separable:
        return plan
    return judge(network, _fewest(network, plan.slots, target_seconds, most_slots), plan.reason)


def all_though_too_few(network: Network, most_slots: int) -> SlotPlan:
    """All slots there are, where they cannot keep up: shared so that no stage lags much more than another.

    >>> from penstock.model import MMk, NetworkStage
    >>> stages = (NetworkStage("sift", MMk(20.0, 1.0)), NetworkStage("match", MMk(60.0, 1.0)))
    >>> all_though_too_few(Network(stages), 8).slots
    {'sift': 2, 'match': 6}
    """
    least = network.least_slots
    slots = dict.fromkeys(least, 1)
    for _ in range(most_slots - len(slots)):
        slots[max(slots, key=lambda name: least[name] / slots[name])] += 1
    return judge(network, slots, f"all {most_slots} slots, which are too few")


def _grown(network: Network, slots: Slots, most_slots: int) -> Slots:
    """Slots that would help nowhere may do so where they are moved to."""
    now = best_moved(network, slots)
    while sum(now.values()) < most_slots:
        more = best_moved(network, _with_one_more(network, now))
        if not network.sojourn_seconds(more) < (1.0 - WORTH) * network.sojourn_seconds(now):
            break
        now = more
    return now


def _fewest(network: Network, slots: Slots, target_seconds: float, most_slots: int) -> Slots:
    """More than the stages by themselves would need, or fewer, until the target is just met."""
    now = best_moved(network, slots)
    if network.sojourn_seconds(now) > target_seconds:
        # Each further slot is a search of its own: whether all there are would do is asked first.
        most = assign_processors(network, most_slots)
        if most.sojourn_seconds > target_seconds:
            raise TargetOutOfReachError(target_seconds, network, most)
        while network.sojourn_seconds(now) > target_seconds and sum(now.values()) < most.total:
            now = best_moved(network, _with_one_more(network, now))
        if network.sojourn_seconds(now) > target_seconds:
            now = dict(most.slots)
    least = sum(network.least_slots.values())
    while sum(now.values()) > least:
        fewer = best_moved(network, _with_one_less(network, now))
        if network.sojourn_seconds(fewer) > target_seconds:
            break
        now = fewer
    return now


def _with_one_more(network: Network, slots: Slots) -> Slots:
    around = [{**slots, name: each + 1} for name, each in slots.items()]
    return min(around, key=network.sojourn_seconds)


def _with_one_less(network: Network, slots: Slots) -> Slots:
    least = network.least_slots
    around = [{**slots, name: each - 1} for name, each in slots.items() if each > least[name]]
    return min(around, key=network.sojourn_seconds)


def judge(network: Network, slots: Mapping[str, int], reason: str = "as it is") -> SlotPlan:
    """What the models say of given slots; E[T] is inf where a stage cannot keep up."""
    gains = network.gain_seconds(slots)
    utilisation = network.utilisation(slots)
    helps_most = max(gains, key=lambda name: (gains[name], utilisation[name]))
    bottleneck = max(utilisation, key=lambda name: utilisation[name])
    return SlotPlan(
        slots=dict(slots),
        sojourn_seconds=network.sojourn_seconds(slots),
        stage_seconds=network.stage_seconds(slots),
        helps_most=helps_most,
        gain_seconds=gains[helps_most],
        bottleneck=bottleneck,
        bottleneck_utilisation=utilisation[bottleneck],
        reason=reason,
    )


class _Greedy:
    """An allocation that grows where that helps most, by one slot at a time.

    Where E[T_i] falls by steps (`NetworkStage.stepped`), one slot may spare nothing and the next much: there
    as many at a time as spare most a slot. The heap has one entry for each stage: minus what it would gain
    for each slot, its place, its seconds then, and how many slots that takes.
    """

    def __init__(self, network: Network, most_slots: int):
        least = network.least_slots
        self._network, self._most_slots = network, most_slots
        self.total = sum(least.values())
        if self.total > most_slots:
            raise TooFewSlotsError(most_slots, network)
        self._slots = list(least.values())
        self._now = [
            stage.weighted_seconds(slots) for stage, slots in zip(network.stages, self._slots, strict=True)
        ]
        self._seconds = sum(self._now)
        self._drift = DRIFT * min(self._seconds, 1.0 / DRIFT)
        self._ahead: dict[tuple[int, int], float] = {}
        self._heap = [self._entry(place) for place in range(len(self._slots))]
        heapify(self._heap)

    @property
    def best_gain(self) -> float:
        return -self._heap[0][0]

    def give(self) -> None:
        """More slots to the stage where they help most; if fewer are left, it is asked for fewer first."""
        _, place, then, slots = self._heap[0]
        if self.total + slots <= self._most_slots:
            change = then - self._now[place]
            self._slots[place] += slots
            self._now[place] = then
            self.total += slots
            # From an endless time nothing can be subtracted.
            self._seconds = self._seconds + change if self._seconds < inf else sum(self._now)
        heapreplace(self._heap, self._entry(place))

    def meets(self, target_seconds: float) -> bool:
        """Whether E[T] is at most that; only near it is the sum taken anew, as the running one drifts."""
        near = target_seconds + self._drift
        return self._seconds <= near and sum(self._now) <= target_seconds

    def plan(self, reason: str) -> SlotPlan:
        names = (stage.name for stage in self._network.stages)
        return judge(self._network, dict(zip(names, self._slots, strict=True)), reason)

    def _entry(self, place: int) -> tuple[float, int, float, int]:
        stage, now, slots = self._network.stages[place], self._now[place], self._slots[place]
        if not stage.stepped:
            then = stage.weighted_seconds(slots + 1)
            return -spared(now, then), place, then, 1
        ahead = range(1, max(min(AHEAD, self._most_slots - self.total), 1) + 1)
        thens = {more: self._seconds_of(place, slots + more) for more in ahead}
        best = max(ahead, key=lambda more: (spared(now, thens[more]) / more, -more))
        return -spared(now, thens[best]) / best, place, thens[best], best

    def _seconds_of(self, place: int, slots: int) -> float:
        if (place, slots) not in self._ahead:
            self._ahead[place, slots] = self._network.stages[place].weighted_seconds(slots)
        return self._ahead[place, slots]
