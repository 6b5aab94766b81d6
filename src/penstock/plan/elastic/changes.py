"""What managers propose, grant and have done: values, and their form as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.plan.elastic.nodes import ElasticError, Replica

Level = Literal["operator", "application", "region", "infrastructure"]


@dataclass(frozen=True)
class AddReplica:
    """One more replica of a stage, on that node; "" where no node has a free slot."""

    stage: str
    node: str

    def __str__(self) -> str:
        return f"a replica of {self.stage} on {self.node}" if self.node else f"a replica of {self.stage}"


@dataclass(frozen=True)
class RemoveReplica:
    stage: str
    index: int
    node: str

    def __str__(self) -> str:
        return f"no replica {self.index} of {self.stage} on {self.node or 'no node'} any more"


@dataclass(frozen=True)
class Move:
    """A replica counts on another node."""

    stage: str
    index: int
    node: str

    @property
    def replica(self) -> Replica:
        return Replica(self.stage, self.index)


@dataclass(frozen=True)
class Consolidate:
    """Nothing of a pipeline counts on `node` any more."""

    node: str
    pipeline: str
    moves: tuple[Move, ...] = ()

    def __str__(self) -> str:
        told = ", ".join(f"{each.stage} to {each.node}" for each in self.moves)
        return f"{self.node} without {self.pipeline}" + (f" ({told})" if told else "")


@dataclass(frozen=True)
class AddNode:
    node: str
    region: str
    slots: int
    price: float = 1.0

    def __str__(self) -> str:
        return f"node {self.node} of {self.slots} slot{'s' if self.slots > 1 else ''} in {self.region}"


@dataclass(frozen=True)
class HideNode:
    """The node is taken from view."""

    node: str

    def __str__(self) -> str:
        return f"{self.node} out of view"


@dataclass(frozen=True)
class ShowNode:
    """Its scale-in is cancelled: the node is back."""

    node: str

    def __str__(self) -> str:
        return f"{self.node} back in view"


@dataclass(frozen=True)
class ReleaseNode:
    """The node is decommissioned."""

    node: str

    def __str__(self) -> str:
        return f"{self.node} decommissioned"


Change = AddReplica | RemoveReplica | Consolidate | AddNode | HideNode | ShowNode | ReleaseNode
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (AddReplica, RemoveReplica, Consolidate, AddNode, HideNode, ShowNode, ReleaseNode)
}


@dataclass(frozen=True)
class Wish:
    """A change that a manager holds to be right."""

    change: Change
    reason: str


@dataclass(frozen=True)
class Hold:
    """No change is wished for."""

    reason: str


@dataclass(frozen=True)
class Proposal:
    """A wish that was told to the manager above."""

    reconfiguration: int
    level: Level
    manager: str
    """The stage, pipeline or region that is looked after; "all" for the infrastructure."""
    change: Change
    reason: str
    causes: tuple[int, ...] = ()
    """Earlier reconfigurations that led to it, besides its own."""


VerdictKind = Literal["granted", "refused", "asked"]


@dataclass(frozen=True)
class Verdict:
    """`asked`: it hangs on the other side, whose managers were told."""

    kind: VerdictKind
    reason: str


@dataclass(frozen=True)
class Action:
    """What is to be done now, and for which reconfiguration."""

    reconfiguration: int
    change: Change


@dataclass(frozen=True)
class Decision:
    """An entry of the log. `seen` tells what happened to nodes and stages without a manager's doing."""

    at: float
    reconfiguration: int
    level: Level
    manager: str
    kind: Literal["proposed", "granted", "refused", "asked", "cancelled", "seen"]
    change: Change | None
    reason: str
    causes: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return {
            **vars(self),
            "change": None if self.change is None else change_to_json(self.change),
            "causes": list(self.causes),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Decision:
        change = stored["change"]
        fields = {
            "change": None if change is None else change_from_json(change),
            "causes": tuple(stored["causes"]),
        }
        return cls(**{**stored, **fields})


def change_to_json(change: Change) -> dict[str, Any]:
    """A dict for `json.dumps`."""
    fields = dict(vars(change))
    if isinstance(change, Consolidate):
        fields["moves"] = [dict(vars(each)) for each in change.moves]
    return {"change": type(change).__name__, **fields}


def change_from_json(stored: Mapping[str, Any]) -> Change:
    """The change that `change_to_json` was called on."""
    fields = dict(stored)
    kind = fields.pop("change", None)
    if kind not in KINDS:
        raise ElasticError(
            f"a stored change must be one of {', '.join(KINDS)}, got {kind!r}: it cannot be explained"
        )
    if kind == Consolidate.__name__:
        fields["moves"] = tuple(Move(**each) for each in fields["moves"])
    made: Change = KINDS[kind](**fields)
    return made
