"""Application managers: where a pipeline starts, which of its operator managers' wishes are granted,
and whether it gives up a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from penstock.plan.elastic.changes import (
    AddReplica,
    Change,
    Consolidate,
    Move,
    Proposal,
    RemoveReplica,
    Verdict,
)
from penstock.plan.elastic.global_policy import Judged, Memory, asked, granted, refused
from penstock.plan.elastic.nodes import NO_PLACE, Node, Room
from penstock.plan.elastic.observation import StageSeen
from penstock.plan.elastic.rules import Rules, applied
from penstock.plan.elastic.settings import ManagedPipeline, ManagedStage


@dataclass(frozen=True)
class ApplicationView:
    """What the manager of one pipeline sees."""

    pipeline: ManagedPipeline
    room: Room
    homes: Mapping[str, str]
    """The region of each stage."""
    rules: Rules
    now: float
    seen: Mapping[str, StageSeen] = field(default_factory=dict)


class ApplicationPolicy(Protocol):
    """A global policy: a verdict on each proposal, given what was granted before it."""

    def judge(self, proposals: Sequence[Proposal], view: ApplicationView, memory: Memory) -> Judged: ...


@dataclass(frozen=True)
class RefuseTaken:
    """Grants everything but a slot that is taken: E2DF, section 4.2. Where none is free, asks for a node."""

    def judge(self, proposals: Sequence[Proposal], view: ApplicationView, memory: Memory) -> Judged:
        room, taken, verdicts = view.room, dict[str, str](), []
        for proposal in proposals:
            verdict = _verdict(proposal, room, view.rules, taken)
            verdicts.append(verdict)
            if verdict.kind == "granted":
                room = applied(proposal.change, room, view.now)
                if isinstance(proposal.change, AddReplica):
                    taken[proposal.change.node] = proposal.manager
        return Judged(tuple(verdicts), memory=memory)


def _verdict(proposal: Proposal, room: Room, rules: Rules, taken: Mapping[str, str]) -> Verdict:
    change = proposal.change
    why_not = rules.why_not(change, room)
    if not why_not:
        return granted(_why(change, room))
    if isinstance(change, AddReplica) and not change.node:
        return asked(f"{why_not}: the infrastructure manager is asked for one")
    if isinstance(change, AddReplica) and change.node in taken:
        return refused(f"{why_not}: {taken[change.node]} has just got it")
    return refused(why_not)


def _why(change: Change, room: Room) -> str:
    if isinstance(change, AddReplica):
        node = room.nodes[change.node]
        return f"{room.free(node)} of {node.slots} slot{'s' if node.slots > 1 else ''} free there"
    if isinstance(change, RemoveReplica):
        return f"{room.ledger.replicas(change.stage) - 1} of {change.stage} stay"
    return "nothing stands against it"


def give_up(view: ApplicationView, name: str) -> tuple[Consolidate, Verdict]:
    """Where the pipeline's replicas go when it is asked to leave a node, and whether it agrees."""
    pipeline, room = view.pipeline, view.room
    mine = {stage.name: stage for stage in pipeline.stages}
    there = [replica for replica in room.ledger.on(name) if replica.stage in mine]
    for replica in there:
        if mine[replica.stage].critical:
            return Consolidate(name, pipeline.name), refused(f"{replica.stage} runs there and is critical")
    moves: list[Move] = []
    for replica in there:
        region = view.homes.get(replica.stage, "")
        free = [node for node in room.with_slot(region) if node.name != name]
        if not free:
            why = f"no other node of {region} has a slot for {replica.stage}"
            return Consolidate(name, pipeline.name), refused(why)
        # Fullest first: a node that is nearly empty may be the next to be given up.
        node = min(free, key=lambda node: (room.free(node), *room.use(node)))
        moves.append(Move(replica.stage, replica.index, node.name))
        room = room.placed(room.ledger.move(replica, node.name))
    return Consolidate(name, pipeline.name, tuple(moves)), granted(f"{len(moves)} moved to other nodes")


def home_of(stage: ManagedStage, view: ApplicationView) -> str:
    """Where a stage is to run: its own region, that of the stages before it, or the one with most room."""
    if stage.region:
        return stage.region
    free = {
        region: sum(view.room.free(node) for node in view.room.in_view(region))
        for region in view.rules.regions
    }
    names = [each.name for each in view.pipeline.stages]
    for name in reversed(names[: names.index(stage.name)]):
        if free.get(view.homes.get(name, ""), 0) >= stage.replicas:
            return view.homes[name]
    return max(free, key=lambda region: free[region])


def first_places(view: ApplicationView, region: str, replicas: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A balanced start: stage and node for each first replica, over R_init nodes; "" where none is free."""
    room = view.room
    start = room.with_slot(region)[: view.pipeline.start_nodes]
    for stage in replicas:
        node = _fewest(start, room) or _fewest(room.with_slot(region), room)
        name = node.name if node else NO_PLACE
        room = room.placed(room.ledger.add(stage, name))
        yield stage, name


def _fewest(nodes: Sequence[Node], room: Room) -> Node | None:
    free = [node for node in nodes if room.free(node) > 0]
    return min(free, key=lambda node: (room.ledger.used(node.name), *room.use(node)), default=None)
