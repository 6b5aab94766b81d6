"""Carries out what managers decided, on a cluster and its stages."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from penstock.act.cluster import ClusterNode, Nodes
from penstock.plan.elastic import (
    Action,
    AddNode,
    AddReplica,
    Consolidate,
    ElasticState,
    Failure,
    HideNode,
    ReleaseNode,
    RemoveReplica,
    ShowNode,
)

log = logging.getLogger("penstock")


class Stages(Protocol):
    """Where the slots of running stages are changed, such as an engine; it may take as long as state takes to
    be divided anew."""

    def set_slots(self, slots: Mapping[str, int], reason: str = "") -> object: ...


class Actuator:
    """Managers name nodes before they are there. Where a cluster gives names itself, both are kept: a node
    that comes unannounced is the first one still awaited of that region and size."""

    def __init__(self, nodes: Nodes, stages: Stages):
        self._nodes, self._stages = nodes, stages
        self._theirs: dict[str, str] = {}
        """By the managers' name, the cluster's."""
        self._awaited: dict[str, AddNode] = {}
        self._met: set[str] = set()

    def apply(self, actions: Iterable[Action], state: ElasticState) -> list[Failure]:
        """Nodes come, then slots change, then nodes go. What failed is told, and seen at the next look."""
        replicas, first, last = dict[str, int](), list[Action](), list[Action]()
        for action in actions:
            if isinstance(action.change, AddReplica | RemoveReplica):
                replicas[action.change.stage] = action.reconfiguration
            else:
                (last if isinstance(action.change, ReleaseNode) else first).append(action)
        failures = [why for action in first if (why := self._tried(action))]
        for stage, number in replicas.items():
            slots = {stage: state.ledger.replicas(stage)}
            try:
                self._stages.set_slots(slots, f"reconfiguration {number}")
            except Exception as error:
                failures.append(Failure(number, f"{slots[stage]} slots for {stage}: {error}"))
        failures += [why for action in last if (why := self._tried(action))]
        for failure in failures:
            log.warning("not done: reconfiguration %d, %s", failure.reconfiguration, failure.reason)
        return failures

    def _tried(self, action: Action) -> Failure | None:
        """Why it could not be done; None if it was. Whatever it was, the other actions are done."""
        try:
            self._do(action)
        except Exception as error:
            return Failure(action.reconfiguration, f"{action.change}: {error}")
        return None

    def name_of(self, node: ClusterNode) -> str:
        """The managers' name of a node of the cluster."""
        ours = {theirs: name for name, theirs in self._theirs.items()}
        if node.name not in ours and node.name not in self._met and node.state != "starting":
            self._met.add(node.name)
            for name, change in self._awaited.items():
                if (change.region, change.slots) == (node.region, node.cores):
                    self._theirs[name] = node.name
                    del self._awaited[name]
                    return name
        return ours.get(node.name, node.name)

    def _do(self, action: Action) -> None:
        change = action.change
        if isinstance(change, AddNode):
            self._theirs[change.node] = self._nodes.start(change.slots, change.region, change.node)
            if self._theirs[change.node] != change.node:
                self._awaited[change.node] = change
        elif isinstance(change, HideNode):
            self._nodes.hide(self._known(change.node))
        elif isinstance(change, ShowNode):
            self._nodes.show(self._known(change.node))
        elif isinstance(change, ReleaseNode):
            self._nodes.release(self._known(change.node))
        else:
            # Spark places tasks itself: where a replica counts is the ledger's business alone.
            assert isinstance(change, Consolidate)

    def _known(self, node: str) -> str:
        return self._theirs.get(node, node)
