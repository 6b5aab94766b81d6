"""A small working thing to be managed: nodes that take a while to come, and stages with fluid queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from penstock.model import MMk
from penstock.plan.elastic import (
    Action,
    AddNode,
    AddReplica,
    Decision,
    Elasticity,
    ElasticState,
    HideNode,
    NodeSeen,
    Observation,
    Record,
    ReleaseNode,
    RemoveReplica,
    ShowNode,
    StageSeen,
)


@dataclass
class PlantStage:
    """Rows come at the input's rate times `rows_per_input`; a replica takes `row_seconds` for each."""

    row_seconds: float
    rows_per_input: float = 1.0
    replicas: int = 0
    backlog: float = 0.0
    busy_seconds: float = 0.0

    def pass_time(self, rate: float, seconds: float) -> float:
        """Seconds that an input spends here now."""
        came = rate * self.rows_per_input
        served = min(self.backlog + came * seconds, self.replicas * seconds / self.row_seconds)
        self.backlog += came * seconds - served
        self.busy_seconds += served * self.row_seconds
        if not self.replicas:
            return self.backlog * self.row_seconds
        behind = self.backlog * self.row_seconds / self.replicas
        if came * self.row_seconds >= self.replicas:
            return self.row_seconds + behind
        return MMk(came, 1.0 / self.row_seconds).sojourn_seconds(self.replicas) + behind


@dataclass
class Plant:
    """Advances by ticks; tells what an engine would tell."""

    rate: Callable[[float], float]
    stages: dict[str, PlantStage]
    nodes: dict[str, NodeSeen] = field(default_factory=dict)
    start_seconds: float = 20.0
    tick_seconds: float = 10.0
    noise: float = 0.0
    seed: int = 0
    now: float = 0.0
    latencies: list[float] = field(default_factory=list)
    replicas_seconds: float = 0.0
    node_seconds: float = 0.0
    most_nodes: int = 0

    def __post_init__(self) -> None:
        self._coming: list[tuple[float, NodeSeen]] = []
        self._looked_at = 0.0
        self._chance = Random(self.seed)

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds / self.tick_seconds)):
            rate = self.rate(self.now)
            stages = self.stages.values()
            self.latencies.append(sum(stage.pass_time(rate, self.tick_seconds) for stage in stages))
            self.now += self.tick_seconds
            for at, node in tuple(self._coming):
                if at <= self.now:
                    self.nodes[node.name] = node
                    self._coming.remove((at, node))
            self.replicas_seconds += self.tick_seconds * sum(stage.replicas for stage in stages)
            # A node is paid for from when it is asked for.
            self.node_seconds += self.tick_seconds * (len(self.nodes) + len(self._coming))
            self.most_nodes = max(self.most_nodes, len(self.nodes))

    def look(self, state: ElasticState) -> Observation:
        """Uses since the last look. A node's is that of the replicas which the ledger has on it."""
        seconds = max(self.now - self._looked_at, 1.0)
        self._looked_at = self.now
        shares = {name: self._shares(stage, seconds) for name, stage in self.stages.items()}
        seen = {name: self._seen(stage, shares[name]) for name, stage in self.stages.items()}
        nodes = [self._node(node, state, shares) for node in self.nodes.values()]
        return Observation(self.now, tuple(nodes), {name: each for name, each in seen.items() if each.shares})

    def _shares(self, stage: PlantStage, seconds: float) -> tuple[float, ...]:
        mean = stage.busy_seconds / seconds / max(stage.replicas, 1)
        stage.busy_seconds = 0.0
        return tuple(
            min(mean * (1.0 + self.noise * self._chance.uniform(-1.0, 1.0)), 1.0)
            for _ in range(stage.replicas)
        )

    def _seen(self, stage: PlantStage, shares: tuple[float, ...]) -> StageSeen:
        rate = self.rate(self.now) * stage.rows_per_input
        rate *= 1.0 + self.noise * self._chance.uniform(-1.0, 1.0)
        return StageSeen(shares, rate, stage.row_seconds)

    def _node(self, node: NodeSeen, state: ElasticState, shares: Mapping[str, tuple[float, ...]]) -> NodeSeen:
        there = [each for each in state.ledger.on(node.name) if each.index < len(shares[each.stage])]
        busy = sum(shares[each.stage][each.index] for each in there)
        return replace(node, busy_share=min(busy / node.slots, 1.0))

    def apply(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            change = action.change
            if isinstance(change, AddReplica):
                self.stages[change.stage].replicas += 1
            elif isinstance(change, RemoveReplica):
                self.stages[change.stage].replicas -= 1
            elif isinstance(change, AddNode):
                node = NodeSeen(change.node, change.region, change.slots)
                self._coming.append((self.now + self.start_seconds, node))
            elif isinstance(change, ReleaseNode):
                self.nodes.pop(change.node, None)
            else:
                assert not isinstance(change, HideNode | ShowNode) or change.node in self.nodes


@dataclass
class Run:
    """A plant under its managers, with everything they decided."""

    elasticity: Elasticity
    plant: Plant
    state: ElasticState = field(default_factory=ElasticState)
    log: list[Record] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)

    def go(self, seconds: int, every: int = 30) -> Run:
        for _ in range(seconds // every):
            self.look()
            self.plant.advance(every)
        return self

    def look(self) -> None:
        seen = self.plant.look(self.state)
        step = self.elasticity.step(self.state, seen)
        self.state = step.state
        self.log.append(Record(seen, step.decisions))
        self.actions += step.actions
        self.plant.apply(step.actions)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return tuple(each for record in self.log for each in record.decisions)
