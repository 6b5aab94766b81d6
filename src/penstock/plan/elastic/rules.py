"""What no policy may do, and what a change leads to: the same for all managers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.plan.elastic.changes import (
    AddNode,
    AddReplica,
    Change,
    Consolidate,
    HideNode,
    ReleaseNode,
    RemoveReplica,
    ShowNode,
)
from penstock.plan.elastic.nodes import Node, Phase, Room
from penstock.plan.elastic.settings import Region


@dataclass(frozen=True)
class Rules:
    """A node never holds more than its slots, a stage keeps a replica, a region stays within its size."""

    regions: Mapping[str, Region]

    def why_not(self, change: Change, room: Room) -> str:
        """Why the change cannot be made; "" if it can."""
        if isinstance(change, AddReplica):
            return _no_slot(change.node, room)
        if isinstance(change, RemoveReplica):
            return _not_removable(change, room)
        if isinstance(change, Consolidate):
            return _not_movable(change, room)
        if isinstance(change, AddNode):
            return self._no_more(change, room)
        return _not_in(change, room)

    def _no_more(self, change: AddNode, room: Room) -> str:
        if change.node in room.nodes:
            return f"there is a node {change.node} already"
        most = self.regions[change.region].most_nodes if change.region in self.regions else 0
        staying = [each for each in room.nodes.values() if each.region == change.region]
        if sum(each.phase != "leaving" for each in staying) >= most:
            return f"region {change.region} may have at most {most} nodes"
        return ""


def applied(change: Change, room: Room, now: float) -> Room:
    """Nodes and ledger after a change that can be made."""
    ledger = room.ledger
    if isinstance(change, AddReplica):
        return room.placed(ledger.add(change.stage, change.node))
    if isinstance(change, RemoveReplica):
        return room.placed(ledger.remove(change.stage, change.index))
    if isinstance(change, Consolidate):
        for move in change.moves:
            ledger = ledger.move(move.replica, move.node)
        return room.placed(ledger)
    if isinstance(change, AddNode):
        node = Node(change.node, change.region, change.slots, change.price, "starting", now)
        return Room({**room.nodes, node.name: node}, ledger)
    phase: Phase = "hidden" if isinstance(change, HideNode) else "up"
    if isinstance(change, ReleaseNode):
        phase = "leaving"
    node = replace(room.nodes[change.node], phase=phase, since=now)
    return Room({**room.nodes, node.name: node}, ledger)


def _no_slot(name: str, room: Room) -> str:
    if not name:
        return "no node has a free slot"
    if room.has_slot(name):
        return ""
    node = room.nodes.get(name)
    if node is None or node.phase != "up":
        return f"{name} is not in view"
    return f"{name} has no free slot"


def _not_removable(change: RemoveReplica, room: Room) -> str:
    nodes = room.ledger.places.get(change.stage, ())
    if len(nodes) < 2:
        return f"{change.stage} would have no replica left"
    if change.index >= len(nodes) or nodes[change.index] != change.node:
        return f"replica {change.index} of {change.stage} is not on {change.node or 'no node'} any more"
    return ""


def _not_movable(change: Consolidate, room: Room) -> str:
    for move in change.moves:
        if why := _no_slot(move.node, room):
            return why
        room = room.placed(room.ledger.move(move.replica, move.node))
    return ""


def _not_in(change: HideNode | ShowNode | ReleaseNode, room: Room) -> str:
    node = room.nodes.get(change.node)
    phases = {HideNode: ("up",), ShowNode: ("hidden",), ReleaseNode: ("up", "hidden")}[type(change)]
    if node is None or node.phase not in phases:
        return f"{change.node} is {'gone' if node is None else node.phase} already"
    count = room.ledger.used(change.node)
    if isinstance(change, ReleaseNode) and count:
        return f"{count} replica{'s count' if count > 1 else ' counts'} on {change.node}"
    return ""
