"""Short ways to what managers see."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.plan.elastic import (
    AddNode,
    AddReplica,
    ApplicationView,
    Change,
    Ledger,
    ManagedPipeline,
    ManagedStage,
    Node,
    Proposal,
    Region,
    ReleaseNode,
    Room,
)
from penstock.plan.elastic.changes import Level
from penstock.plan.elastic.rules import Rules


def room(slots: Mapping[str, int], places: Mapping[str, tuple[str, ...]] | None = None) -> Room:
    """Nodes by name, all of them in region `here`."""
    nodes = {name: Node(name, "here", count, price=float(count)) for name, count in slots.items()}
    return Room(nodes, Ledger(places or {}))


def rules(**settings: int) -> Rules:
    return Rules({"here": Region("here", **settings)})  # type: ignore[arg-type]


def view(seen: Room, *stages: ManagedStage, **settings: float) -> ApplicationView:
    """Of a pipeline `p`, whose stages are all in region `here`."""
    pipeline = ManagedPipeline("p", stages, **settings)  # type: ignore[arg-type]
    return ApplicationView(pipeline, seen, {stage.name: "here" for stage in stages}, rules(), 0.0)


def proposal(change: Change, manager: str = "", number: int = 1) -> Proposal:
    level: Level = "region" if isinstance(change, AddNode | ReleaseNode) else "operator"
    by = change.stage if isinstance(change, AddReplica) else manager
    return Proposal(number, level, by or manager, change, "it is said")
