"""One look of the managers: the state as it changes, and what is decided and to be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING, Literal

from penstock.plan.elastic.changes import (
    Action,
    AddNode,
    AddReplica,
    Change,
    Consolidate,
    Decision,
    HideNode,
    Level,
    Proposal,
    ReleaseNode,
    RemoveReplica,
    ShowNode,
    Verdict,
    Wish,
)
from penstock.plan.elastic.global_policy import refused
from penstock.plan.elastic.nodes import NO_PLACE, Room
from penstock.plan.elastic.observation import Observation
from penstock.plan.elastic.rules import Rules, applied
from penstock.plan.elastic.state import ElasticState, ScaleIn, SlotRequest

if TYPE_CHECKING:
    from penstock.plan.elastic.elasticity import Elasticity

MOST_NAMES = 64
"""Nodes of a region that may be added at one look."""
Kind = Literal["proposed", "granted", "refused", "asked", "cancelled", "seen"]


class Round:
    """A working copy of the state. Managers read `room`, and change things by `propose` and `settle`."""

    def __init__(self, settings: Elasticity, state: ElasticState, seen: Observation):
        self.settings, self.seen, self.now = settings, seen, seen.now
        self.rules = Rules({region.name: region for region in settings.regions})
        self.owners = {stage.name: each.name for each in settings.pipelines for stage in each.stages}
        self.room = Room(state.nodes, state.ledger)
        self.homes, self.due = dict(state.homes), dict(state.due)
        self.waiting, self.requests = list(state.waiting), list(state.requests)
        self.scale_ins, self.open = dict(state.scale_ins), dict(state.open)
        self.memory, self.needs = dict(state.memory), dict(state.needs)
        self.took, self.gave = dict(state.took), dict(state.gave)
        self.left_alone = {name: until for name, until in state.left_alone.items() if until > self.now}
        self.changed_at, self.named = dict(state.changed_at), dict(state.named)
        self.decisions: list[Decision] = []
        self.actions: list[Action] = []
        self._last = state.last_reconfiguration

    def state(self) -> ElasticState:
        """What is to be remembered."""
        return ElasticState(
            nodes=self.room.nodes,
            ledger=self.room.ledger,
            homes=self.homes,
            due=self.due,
            waiting=tuple(self.waiting),
            scale_ins=self.scale_ins,
            requests=tuple(self.requests),
            memory=self.memory,
            needs=self.needs,
            open=self.open,
            took=self.took,
            gave=self.gave,
            left_alone=self.left_alone,
            changed_at=self.changed_at,
            named=self.named,
            last_reconfiguration=self._last,
        )

    def is_due(self, level: Level, period_seconds: float) -> bool:
        """Whether the managers of a level look now; if so, when they look next is set."""
        due = self.due.get(level, self.now)
        if self.now < due - 1e-6:
            return False
        late = self.now - due
        self.due[level] = due + (1 + int(late / period_seconds + 1e-9)) * period_seconds
        return True

    def reconfiguration(self, key: str, causes: Sequence[int] = ()) -> int:
        """The one that is open for this, the last that led to it, or a new one."""
        if key not in self.open:
            if not causes:
                self._last += 1
            self.open[key] = causes[-1] if causes else self._last
        return self.open[key]

    def propose(self, level: Level, manager: str, wish: Wish, causes: Sequence[int] = ()) -> Proposal:
        """A wish becomes a proposal, with its place in the log."""
        number = self.reconfiguration(key_of(wish.change), causes)
        others = tuple(dict.fromkeys(each for each in causes if each != number))
        proposal = Proposal(number, level, manager, wish.change, wish.reason, others)
        self.note(level, manager, "proposed", proposal, wish.reason)
        return proposal

    def settle(self, level: Level, manager: str, proposal: Proposal, verdict: Verdict) -> Verdict:
        """Logs a verdict and carries it out; what breaks a rule is refused, whatever the policy said."""
        if verdict.kind == "granted" and (why_not := self.rules.why_not(proposal.change, self.room)):
            verdict = refused(why_not)
        self.note(level, manager, verdict.kind, proposal, verdict.reason)
        if verdict.kind == "granted":
            self.make(proposal.reconfiguration, proposal.change)
            self.open.pop(key_of(proposal.change), None)
        elif verdict.kind == "asked":
            self._ask(proposal)
        return verdict

    def note(self, level: Level, manager: str, kind: Kind, what: Proposal, reason: str) -> None:
        self.decisions.append(
            Decision(self.now, what.reconfiguration, level, manager, kind, what.change, reason, what.causes)
        )

    def saw(self, level: Level, manager: str, number: int, reason: str) -> None:
        """Something that no manager did."""
        self.decisions.append(Decision(self.now, number, level, manager, "seen", None, reason))

    def make(self, number: int, change: Change) -> None:
        """The change is made, and is an action."""
        self.room = applied(change, self.room, self.now)
        self.actions.append(Action(number, change))
        if isinstance(change, AddReplica):
            self.changed_at[change.stage] = self.now
            self._count(self.took, change.node, number)
            self._spend(change.node)
        elif isinstance(change, RemoveReplica):
            self.changed_at[change.stage] = self.now
            self._count(self.gave, change.node, number)
        elif isinstance(change, Consolidate) and not change.node:
            for move in change.moves:
                self._count(self.took, move.node, number)
        elif isinstance(change, AddNode):
            self.open[f"node {change.node}"] = number
            number_of = change.node.rpartition("-")[2]
            named = int(number_of) if number_of.isdigit() else 0
            self.named[change.region] = max(named, self.named.get(change.region, 0))
        elif isinstance(change, ReleaseNode):
            self.open[f"node {change.node}"] = number
            self._spend(change.node, number)

    def fresh_names(self, region: str) -> tuple[str, ...]:
        """Names for nodes that nobody ever had here: as many as the region may have more, and one."""
        here = sum(node.region == region for node in self.room.nodes.values())
        some = min(MOST_NAMES, max(self.rules.regions[region].most_nodes - here, 0) + 1)
        numbers = count(self.named.get(region, 0) + 1)
        names = (f"{region}-{number}" for number in numbers)
        return tuple(islice((name for name in names if name not in self.room.nodes), some))

    def homeless(self, region: str) -> int:
        """Replicas of a region that have no node, and slots that were asked for."""
        there = [each for each in self.room.ledger.on(NO_PLACE) if self.homes.get(each.stage) == region]
        return len(there) + sum(each.region == region for each in self.requests)

    def _ask(self, proposal: Proposal) -> None:
        change = proposal.change
        if isinstance(change, AddReplica):
            region = self.homes.get(change.stage, "")
            self.requests.append(SlotRequest(region, change.stage, proposal.reconfiguration))
        elif isinstance(change, ReleaseNode):
            owners = {self.owners[each.stage] for each in self.room.ledger.on(change.node)}
            hide = replace(proposal, change=HideNode(change.node))
            self.note("infrastructure", "all", "granted", hide, "until it is given up or comes back")
            self.make(proposal.reconfiguration, hide.change)
            self.scale_ins[change.node] = ScaleIn(
                change.node, proposal.reconfiguration, self.now, tuple(sorted(owners))
            )

    def cancel(self, scale_in: ScaleIn, reason: str) -> None:
        """The node comes back, and is left alone for a while."""
        del self.scale_ins[scale_in.node]
        self.open.pop(f"release {scale_in.node}", None)
        change = ShowNode(scale_in.node)
        self.left_alone[scale_in.node] = self.now + self.settings.periods.retry_seconds
        proposal = Proposal(scale_in.reconfiguration, "infrastructure", "all", change, reason)
        self.note("infrastructure", "all", "cancelled", proposal, reason)
        self.make(scale_in.reconfiguration, change)

    def answered(self, scale_in: ScaleIn, pipeline: str, refusal: str) -> None:
        """A pipeline has answered."""
        waiting = tuple(each for each in scale_in.waiting if each != pipeline)
        self.scale_ins[scale_in.node] = replace(
            scale_in, waiting=waiting, refusal=scale_in.refusal or refusal
        )

    def _count(self, counts: dict[str, tuple[int, ...]], node: str, number: int) -> None:
        if node in self.room.nodes:
            region = self.room.nodes[node].region
            counts[region] = (*counts.get(region, ()), number)

    def _spend(self, node: str, number: int = 0) -> None:
        """A slot that was given back is taken again, or its node goes."""
        region = self.room.nodes[node].region
        gave = list(self.gave.get(region, ()))
        if number in gave or (gave and not number):
            gave.remove(number or gave[-1])
            self.gave[region] = tuple(gave)


def key_of(change: Change) -> str:
    """What a reconfiguration is for, so that the same wish, told again, goes on with it."""
    if isinstance(change, AddReplica):
        return f"more {change.stage}"
    if isinstance(change, RemoveReplica):
        return f"fewer {change.stage}"
    if isinstance(change, AddNode):
        return f"grow {change.node}"
    if isinstance(change, Consolidate):
        return f"place {change.pipeline} off {change.node}"
    return f"release {change.node}"
