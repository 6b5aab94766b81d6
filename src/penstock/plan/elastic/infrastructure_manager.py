"""The infrastructure manager: which nodes come and go, over all regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from penstock.plan.elastic.changes import AddNode, Change, Proposal, ReleaseNode, Verdict
from penstock.plan.elastic.global_policy import Judged, Memory, asked, granted, refused
from penstock.plan.elastic.nodes import Room
from penstock.plan.elastic.rules import Rules, applied


@dataclass(frozen=True)
class InfrastructureView:
    """What the manager of all regions sees."""

    room: Room
    rules: Rules
    now: float
    needs: Mapping[str, int] = field(default_factory=dict)
    """Slots by region that the pipelines have or will need soon, where their managers tell."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """The pipeline of each stage."""
    critical: frozenset[str] = frozenset()
    """Nodes that a pipeline would not give up."""
    left_alone: frozenset[str] = frozenset()
    """Nodes whose scale-in was cancelled lately."""
    fresh_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names for new nodes, by region."""


class InfrastructurePolicy(Protocol):
    """A global policy: a verdict on each proposal, given what was granted before it."""

    def judge(self, proposals: Sequence[Proposal], view: InfrastructureView, memory: Memory) -> Judged: ...


@dataclass(frozen=True)
class GrantOrAsk:
    """Grants everything, but asks the pipelines for a node that they use: E2DF, section 4.1."""

    def judge(self, proposals: Sequence[Proposal], view: InfrastructureView, memory: Memory) -> Judged:
        room, verdicts = view.room, []
        for proposal in proposals:
            verdict = verdict_on(proposal, room, view)
            verdicts.append(verdict)
            if verdict.kind == "granted":
                room = applied(proposal.change, room, view.now)
        return Judged(tuple(verdicts), memory=memory)


def verdict_on(proposal: Proposal, room: Room, view: InfrastructureView) -> Verdict:
    """Granted where nothing stands against it; asked where only replicas do."""
    change = proposal.change
    why_not = view.rules.why_not(change, room)
    if not why_not:
        return granted(_why(change, room, view))
    node = room.nodes.get(change.node) if isinstance(change, ReleaseNode) else None
    if node is not None and node.phase == "up":
        return _asked_of(node.name, room, view.owners)
    return refused(why_not)


def _why(change: Change, room: Room, view: InfrastructureView) -> str:
    if isinstance(change, AddNode):
        count = sum(node.region == change.region for node in room.nodes.values())
        return f"{change.region} has {count} nodes, at most {view.rules.regions[change.region].most_nodes}"
    return "nothing is on it" if isinstance(change, ReleaseNode) else "nothing stands against it"


def _asked_of(node: str, room: Room, owners: Mapping[str, str]) -> Verdict:
    """Asks the pipelines that use a node."""
    names = sorted({owners.get(replica.stage, replica.stage) for replica in room.ledger.on(node)})
    count = room.ledger.used(node)
    counts = f"{count} replicas count" if count > 1 else "1 replica counts"
    return asked(f"{counts} on it: {', '.join(names)} asked to consolidate")
