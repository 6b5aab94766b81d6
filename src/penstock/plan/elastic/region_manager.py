"""Region managers: enough free slots for new replicas, and no node more than that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.plan.elastic.changes import AddNode, ReleaseNode, Wish
from penstock.plan.elastic.nodes import Node, Room
from penstock.plan.elastic.settings import Region


@dataclass(frozen=True)
class RegionView:
    """What the manager of one region sees."""

    region: Region
    room: Room
    homeless: int
    """Replicas of this region that have no node yet: slots that are as good as taken."""
    fresh_names: tuple[str, ...]
    """Names for new nodes, more than enough."""
    left_alone: frozenset[str] = frozenset()
    """Nodes whose scale-in was cancelled lately."""
    unmeasured: frozenset[str] = frozenset()
    """Nodes that have not been what they are for a whole period: that they do little says nothing yet."""


class RegionPolicy(Protocol):
    """A local policy: it proposes, the infrastructure manager decides."""

    def propose(self, view: RegionView) -> tuple[Wish, ...]: ...


@dataclass(frozen=True)
class KeepReserve:
    """sum(C_n - A_n) >= C_r by the smallest nodes; a surplus goes, empty nodes first: E2DF, section 4.1."""

    def propose(self, view: RegionView) -> tuple[Wish, ...]:
        region = view.region
        free = view.room.free_slots(region.name) - view.homeless
        if free < region.reserve_slots:
            return tuple(_more(view, free))
        return tuple(_fewer(view, free))


@dataclass(frozen=True)
class FixedNodes:
    """Proposes nothing: for nodes that stay as they are. With `most_nodes` the region grows for nobody."""

    def propose(self, view: RegionView) -> tuple[Wish, ...]:
        return ()


def _more(view: RegionView, free: int) -> list[Wish]:
    region, kind = view.region, view.region.smallest
    reason = f"{free} slot{'' if free == 1 else 's'} free in {region.name}, {region.reserve_slots} wanted"
    if view.homeless:
        reason += f" ({view.homeless} replicas have no node)"
    short = region.reserve_slots - free
    count = min(-(-short // kind.slots), len(view.fresh_names))
    return [
        Wish(AddNode(name, region.name, kind.slots, kind.price), reason) for name in view.fresh_names[:count]
    ]


def _fewer(view: RegionView, free: int) -> list[Wish]:
    """Empty nodes, the largest that can be spared first; then nodes that do little, the least used first."""
    region, room = view.region, view.room
    nodes = [node for node in room.in_view(region.name) if node.name not in view.left_alone]
    empty = [node for node in nodes if not room.ledger.used(node.name)]
    idle = [
        node
        for node in nodes
        if room.ledger.used(node.name)
        and node.busy_share <= region.low_share
        and node.name not in view.unmeasured
    ]
    wishes = []
    for node in (*sorted(empty, key=lambda each: (-each.slots, each.name)), *sorted(idle, key=room.use)):
        if free - node.slots < region.reserve_slots:
            continue
        free -= node.slots
        wishes.append(Wish(ReleaseNode(node.name), _why_released(node, room, free, region)))
    return wishes


def _why_released(node: Node, room: Room, left: int, region: Region) -> str:
    count = room.ledger.used(node.name)
    does = (
        f"{node.name} is busy {node.busy_share:.0%} of the time with {count} replicas"
        if count
        else "it is empty"
    )
    return f"{does}; {left} slots stay free in {region.name}, {region.reserve_slots} wanted"
