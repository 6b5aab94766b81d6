"""Operator managers: by the use of a stage's replicas, whether it should have one more or one less."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Protocol
from zlib import crc32

from penstock.plan.elastic.changes import AddReplica, Hold, RemoveReplica, Wish
from penstock.plan.elastic.nodes import ElasticError, Node, Room
from penstock.plan.elastic.settings import ManagedStage


@dataclass(frozen=True)
class OperatorView:
    """What the manager of one stage sees: its replicas, and the nodes of their region."""

    stage: ManagedStage
    region: str
    shares: tuple[float, ...]
    """S_a, by replica."""
    room: Room
    chance: Random
    """Seeded for this look."""
    calm: bool = True
    """Whether no stage of its pipeline has changed of late or is cold: rows that wait there come later."""


class OperatorPolicy(Protocol):
    """A local policy: it proposes, the application manager decides."""

    def propose(self, view: OperatorView) -> Wish | Hold: ...


@dataclass(frozen=True)
class Thresholds:
    """One more where any replica is too busy, one less where the others could do the work: E2DF, section 4.2.

    Where both hold at once, neither is right.

    >>> Thresholds().reason_for_more((0.4, 0.83))
    'replica 1 is busy 83% of the time, more than 70%'
    >>> Thresholds().reason_for_fewer((0.3, 0.3, 0.3))
    '2 replicas would be busy 45% of the time, less than 52.5%'
    """

    out_share: float = 0.7
    """S_out."""
    in_factor: float = 0.75
    """c."""

    def __post_init__(self) -> None:
        if not 0.0 < self.out_share <= 1.0 or not 0.0 <= self.in_factor < 1.0:
            raise ElasticError(
                f"thresholds must be an out_share over 0 and up to 1 and an in_factor below 1, got "
                f"{self.out_share} and {self.in_factor}: replicas would come and go for ever"
            )

    def propose(self, view: OperatorView) -> Wish | Hold:
        stage, count = view.stage, len(view.shares)
        more, fewer = self.reason_for_more(view.shares), self.reason_for_fewer(view.shares)
        if more and fewer:
            return Hold(f"{more}, but {fewer}: its rows are not spread evenly, which no replica helps")
        if more:
            if count >= stage.most_replicas:
                return Hold(f"{more}, but {stage.name} has its most replicas, {count}")
            node = least_used(view.room.with_slot(view.region), view.room, stage.name)
            where = f"{node.name} is the least used node" if node else f"no node of {view.region} has a slot"
            return Wish(AddReplica(stage.name, node.name if node else ""), f"{more}; {where}")
        if fewer and not view.calm:
            return Hold(f"{fewer}, but a stage of its pipeline has just changed, or runs on a new node")
        if fewer:
            busiest = sorted(range(count), key=lambda index: -view.shares[index])[:2]
            index = view.chance.choice(busiest)
            node_name = view.room.ledger.places[stage.name][index]
            drawn = f"replica {index} was drawn of the two busiest"
            return Wish(RemoveReplica(stage.name, index, node_name), f"{fewer}; {drawn}")
        return Hold(f"{count} replicas are neither too many nor too few")

    def reason_for_more(self, shares: tuple[float, ...]) -> str:
        """S_a > S_out for any a; "" if for none."""
        index = max(range(len(shares)), key=lambda index: shares[index], default=0)
        if not shares or shares[index] <= self.out_share:
            return ""
        return f"replica {index} is busy {shares[index]:.0%} of the time, more than {self.out_share:.0%}"

    def reason_for_fewer(self, shares: tuple[float, ...]) -> str:
        """sum(S) / (n - 1) < c S_out; "" if it is not."""
        if len(shares) < 2:
            return ""
        others, limit = sum(shares) / (len(shares) - 1), self.in_factor * self.out_share
        if others >= limit:
            return ""
        left = len(shares) - 1
        return (
            f"{left} replica{'s' if left > 1 else ''} would be busy {others:.0%} of the time, "
            f"less than {100.0 * limit:.3g}%"
        )


@dataclass(frozen=True)
class OnlyMeasure:
    """Proposes nothing: for an application manager that plans all stages at once."""

    def propose(self, view: OperatorView) -> Hold:
        return Hold(f"{view.stage.name} is planned by its application manager")


def least_used(nodes: list[Node], room: Room, stage: str) -> Node | None:
    """Of nodes used alike, to a tenth, each stage takes another, so that proposals rarely collide."""

    def use(node: Node) -> tuple[float, float, int]:
        busy, taken, name = room.use(node)
        return round(busy, 1), taken, crc32(f"{stage} {name}".encode())

    return min(nodes, key=use, default=None)
