"""Nodes, and the ledger of which replica counts on which node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from penstock.errors import PenstockError

Phase = Literal["starting", "up", "hidden", "leaving"]
"""`hidden` is taken from view: what runs on it goes on, nothing new is placed there."""

NO_PLACE = ""
"""Where a replica counts that has no node yet, or whose node was lost."""


class ElasticError(PenstockError):
    """Settings or a state that no manager could work with."""


@dataclass(frozen=True)
class Node:
    """A machine, or a part of one, that holds `slots` replicas."""

    name: str
    region: str
    slots: int
    """C_n."""
    price: float = 1.0
    """For any unit of time."""
    phase: Phase = "up"
    since: float = 0.0
    """When it came to this phase."""
    busy_share: float = 0.0
    """U_n, of its slots over the last period."""


@dataclass(frozen=True)
class NodeKind:
    """What a region can be given more of."""

    slots: int
    price: float = 1.0

    def __post_init__(self) -> None:
        if self.slots < 1 or not self.price > 0.0:
            raise ElasticError(
                f"a kind of node must have at least 1 slot and a positive price, got {self.slots} slots at "
                f"{self.price}: nothing could run on it, or any number of them would cost nothing"
            )


@dataclass(frozen=True)
class Replica:
    """Task `index` of every turn of a stage."""

    stage: str
    index: int


@dataclass(frozen=True)
class Ledger:
    """By stage, the node of each replica. Spark places tasks itself: this is what is counted on.

    >>> ledger = Ledger().add("split", "n1").add("split", "n2").add("count", "n1")
    >>> ledger.used("n1"), ledger.remove("split", 0).used("n1")
    (2, 1)
    """

    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def replicas(self, stage: str) -> int:
        return len(self.places.get(stage, ()))

    def used(self, node: str) -> int:
        """A_n."""
        return self._used[node]

    def on(self, node: str) -> tuple[Replica, ...]:
        """What counts on a node; with `NO_PLACE`, what has none."""
        return tuple(self._on.get(node, ()))

    def add(self, stage: str, node: str) -> Ledger:
        return self._with(stage, (*self.places.get(stage, ()), node))

    def remove(self, stage: str, index: int) -> Ledger:
        nodes = self.places[stage]
        return self._with(stage, nodes[:index] + nodes[index + 1 :])

    def move(self, replica: Replica, node: str) -> Ledger:
        nodes = list(self.places[replica.stage])
        nodes[replica.index] = node
        return self._with(replica.stage, tuple(nodes))

    def lost(self, node: str) -> Ledger:
        """Its replicas have no place any more."""
        return Ledger(
            {
                stage: tuple(NO_PLACE if name == node else name for name in nodes)
                for stage, nodes in self.places.items()
            }
        )

    def only(self, stages: Iterable[str]) -> Ledger:
        """Without the stages that are gone."""
        kept = set(stages)
        return Ledger({stage: nodes for stage, nodes in self.places.items() if stage in kept})

    def _with(self, stage: str, nodes: tuple[str, ...]) -> Ledger:
        return Ledger({**self.places, stage: nodes})

    @cached_property
    def _used(self) -> Counter[str]:
        return Counter(name for nodes in self.places.values() for name in nodes)

    @cached_property
    def _on(self) -> dict[str, list[Replica]]:
        there: dict[str, list[Replica]] = {}
        for stage, nodes in self.places.items():
            for index, name in enumerate(nodes):
                there.setdefault(name, []).append(Replica(stage, index))
        return there


@dataclass(frozen=True)
class Room:
    """Nodes together with what is placed on them: where there is a free slot, and how many."""

    nodes: Mapping[str, Node]
    ledger: Ledger

    def free(self, node: Node) -> int:
        """C_n - A_n."""
        return node.slots - self.ledger.used(node.name)

    def in_view(self, region: str) -> list[Node]:
        """The nodes on which replicas may be placed."""
        return [node for node in self.nodes.values() if node.region == region and node.phase == "up"]

    def expected(self, region: str) -> list[Node]:
        """Those and the nodes that start."""
        phases = ("up", "starting")
        return [node for node in self.nodes.values() if node.region == region and node.phase in phases]

    def free_slots(self, region: str) -> int:
        """sum(C_n - A_n), with nodes that start; what has no place yet is not taken off."""
        return sum(self.free(node) for node in self.expected(region))

    def has_slot(self, name: str) -> bool:
        node = self.nodes.get(name)
        return node is not None and node.phase == "up" and self.free(node) > 0

    def with_slot(self, region: str) -> list[Node]:
        """Least used first: by U_n, then by the share of slots that are taken."""
        free = [node for node in self.in_view(region) if self.free(node) > 0]
        return sorted(free, key=self.use)

    def use(self, node: Node) -> tuple[float, float, str]:
        return node.busy_share, self.ledger.used(node.name) / node.slots, node.name

    def placed(self, ledger: Ledger) -> Room:
        """The same nodes with another ledger."""
        return Room(self.nodes, ledger)
