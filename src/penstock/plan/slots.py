"""Slots for each stage: DRS's AssignProcessors and MinProcessors (Algorithms 1 and 2), with a heap.

Two slips of the printed listings are mended. Algorithm 1 loops while the sum is at most K_max, and so hands
out one processor too many: here it loops while the sum is below K_max. Algorithm 2 takes sum(1/mu_i) for the
least E[T]; by equation 4 that is (1/lambda_0) sum(lambda_i/mu_i). Two departures: slots that help nowhere
stay free, and Algorithm 2 goes on from its last allocation rather than calling Algorithm 1 anew for each K,
which leads to the same allocations in O((K + N) log N). Both are optimal where every E[T_i] is convex in k.
Where stages depend on each other (`TurnNetwork`), slots are then moved one by one for as long as that helps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from math import inf

from penstock.errors import PenstockError
from penstock.model.network import Network
from penstock.plan.moved_slots import WORTH, best_moved
from penstock.plan.slot_errors import TargetOutOfReachError, TooFewSlotsError

MOST_SLOTS = 10_000
"""Beyond which no allocation is looked for."""
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
    return plan if network.separable else _grown(network, plan, most_slots)


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
    return plan if network.separable else _fewest(network, plan, target_seconds, most_slots)


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


def _grown(network: Network, plan: SlotPlan, most_slots: int) -> SlotPlan:
    """Slots that would help nowhere may do so where they are moved to."""
    now = _moved(network, plan)
    while now.total < most_slots:
        more = _moved(network, judge(network, _with_one_more(network, now), plan.reason))
        if not more.sojourn_seconds < (1.0 - WORTH) * now.sojourn_seconds:
            break
        now = more
    return now


def _moved(network: Network, plan: SlotPlan) -> SlotPlan:
    """Stages that depend on each other: an allocation is where the search for a better one begins."""
    return judge(network, best_moved(network, plan.slots), plan.reason)


def _fewest(network: Network, plan: SlotPlan, target_seconds: float, most_slots: int) -> SlotPlan:
    """More than the stages by themselves would need, or fewer, until the target is just met."""
    now = _moved(network, plan)
    if now.sojourn_seconds > target_seconds:
        # Each further slot is a search of its own: whether all there are would do is asked first.
        most = replace(assign_processors(network, most_slots), reason=plan.reason)
        if most.sojourn_seconds > target_seconds:
            raise TargetOutOfReachError(target_seconds, network, most)
        while now.sojourn_seconds > target_seconds and now.total < most.total:
            now = _moved(network, judge(network, _with_one_more(network, now), plan.reason))
        if now.sojourn_seconds > target_seconds:
            now = most
    least = sum(network.least_slots.values())
    while now.total > least:
        fewer = _moved(network, judge(network, _with_one_less(network, now), plan.reason))
        if fewer.sojourn_seconds > target_seconds:
            break
        now = fewer
    return now


def _with_one_more(network: Network, plan: SlotPlan) -> Mapping[str, int]:
    around = [{**plan.slots, name: slots + 1} for name, slots in plan.slots.items()]
    return min(around, key=network.sojourn_seconds)


def _with_one_less(network: Network, plan: SlotPlan) -> Mapping[str, int]:
    least = network.least_slots
    around = [{**plan.slots, name: slots - 1} for name, slots in plan.slots.items() if slots > least[name]]
    return min(around, key=network.sojourn_seconds)


def judge(network: Network, slots: Mapping[str, int], reason: str = "as it is") -> SlotPlan:
    """What the models say of given slots; E[T] is inf where a stage cannot keep up."""
    seconds = {each.name: each.model.sojourn_seconds(slots[each.name]) for each in network.stages}
    gains = {
        each.name: _gain(each.weighted_seconds(slots[each.name]), each.weighted_seconds(slots[each.name] + 1))
        for each in network.stages
    }
    utilisation = network.utilisation(slots)
    helps_most = max(gains, key=lambda name: (gains[name], utilisation[name]))
    bottleneck = max(utilisation, key=lambda name: utilisation[name])
    return SlotPlan(
        slots=dict(slots),
        sojourn_seconds=network.sojourn_seconds(slots),
        stage_seconds=seconds,
        helps_most=helps_most,
        gain_seconds=gains[helps_most],
        bottleneck=bottleneck,
        bottleneck_utilisation=utilisation[bottleneck],
        reason=reason,
    )


def _gain(now: float, then: float) -> float:
    """What one more slot spares; a stage that cannot keep up comes before all others."""
    return inf if now == inf else now - then


class _Greedy:
    """An allocation that grows by one slot at a time, each where it helps most.

    The heap has one entry for each stage: minus the gain of one more slot, its place, its seconds then.
    """

    def __init__(self, network: Network, most_slots: int):
        least = network.least_slots
        self._network = network
        self.total = sum(least.values())
        if self.total > most_slots:
            raise TooFewSlotsError(most_slots, network)
        self._slots = list(least.values())
        self._now = [
            stage.weighted_seconds(slots) for stage, slots in zip(network.stages, self._slots, strict=True)
        ]
        self._seconds = sum(self._now)
        self._drift = DRIFT * min(self._seconds, 1.0 / DRIFT)
        self._heap = [self._entry(place) for place in range(len(self._slots))]
        heapify(self._heap)

    @property
    def best_gain(self) -> float:
        return -self._heap[0][0]

    def give(self) -> None:
        """One more slot to the stage where it helps most."""
        gain, place, then = self._heap[0]
        self._slots[place] += 1
        self._now[place] = then
        self.total += 1
        # From an endless time nothing can be subtracted.
        self._seconds = self._seconds + gain if self._seconds < inf else sum(self._now)
        heapreplace(self._heap, self._entry(place))

    def meets(self, target_seconds: float) -> bool:
        """Whether E[T] is at most that; only near it is the sum taken anew, as the running one drifts."""
        near = target_seconds + self._drift
        return self._seconds <= near and sum(self._now) <= target_seconds

    def plan(self, reason: str) -> SlotPlan:
        names = (stage.name for stage in self._network.stages)
        return judge(self._network, dict(zip(names, self._slots, strict=True)), reason)

    def _entry(self, place: int) -> tuple[float, int, float]:
        then = self._network.stages[place].weighted_seconds(self._slots[place] + 1)
        return -_gain(self._now[place], then), place, then
