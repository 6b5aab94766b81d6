"""Nodes with slots that come and go, and which of them a turn runs on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from penstock.simulate.errors import SimulationError


@dataclass(frozen=True, slots=True)
class Node:
    """A machine with slots. It is there from `joins_at` on, until it leaves.

    One that leaves lets its turns end; one that `crashes` does not: their rows wait again.
    """

    name: str
    slots: int
    joins_at: float = 0.0
    leaves_at: float = inf
    crashes: bool = False

    def __post_init__(self) -> None:
        if self.slots < 1 or not self.joins_at < self.leaves_at:
            raise SimulationError(
                f"node {self.name!r} must have a slot and leave after it has joined, got {self.slots} slots "
                f"from {self.joins_at:g} to {self.leaves_at:g} s: no turn could run on it"
            )


class SlotMap:
    """Which slots are free, by node. The one that was freed last is taken first."""

    def __init__(self) -> None:
        self.total = 0
        self._here: set[str] = set()
        self._free: list[str] = []
        self._slot_seconds = 0.0
        self._since = 0.0

    def count_from(self, time: float) -> None:
        """What slots there are counts from then on."""
        self._since = time

    def count(self, now: float) -> None:
        """Slots are about to change, or were asked for."""
        self._slot_seconds += self.total * max(now - self._since, 0.0)
        self._since = max(now, self._since)

    def busy_share(self, slot_seconds: float, now: float) -> float:
        """So much occupied, of what there was up to now."""
        self.count(now)
        return slot_seconds / self._slot_seconds if self._slot_seconds > 0.0 else 0.0

    def join(self, node: Node) -> None:
        self._here.add(node.name)
        self._free += [node.name] * node.slots
        self.total += node.slots

    def leave(self, node: Node) -> None:
        """Its free slots are found to be gone when their turn comes."""
        self._here.discard(node.name)
        self.total -= node.slots

    def place(self, slots: int) -> tuple[str, ...]:
        """The nodes of so many free slots, which are taken."""
        found: list[str] = []
        while len(found) < slots:
            node = self._free.pop()
            if node in self._here:
                found.append(node)
        return tuple(found)

    def release(self, places: Iterable[str]) -> None:
        self._free.extend(node for node in places if node in self._here)


def checked(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Nodes of different names, some of which are there at any time."""
    listed = tuple(nodes)
    if len({node.name for node in listed}) < len(listed):
        raise SimulationError(
            "nodes must have names of their own, got one twice: which one left is not known"
        )
    moments = {0.0, *(node.leaves_at for node in listed if node.leaves_at < inf)}
    for moment in sorted(moments):
        if not any(node.joins_at <= moment < node.leaves_at for node in listed):
            raise SimulationError(
                f"a pool must have a node at any time, got none at {moment:g} s: no turn could run"
            )
    return listed


def pool_of(slots: int) -> tuple[Node, ...]:
    """One node that stays."""
    return (Node("node", slots),)
