"""Carries out what managers decided, on a cluster and its stages."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

from penstock.act.cluster import ClusterNode, Nodes
from penstock.errors import PenstockError
from penstock.plan.elastic import (
    Action,
    AddNode,
    AddReplica,
    Consolidate,
    ElasticState,
    HideNode,
    ReleaseNode,
    RemoveReplica,
    ShowNode,
)

log = logging.getLogger("penstock")


class Stages(Protocol):
    """Where the slots of a running stage are changed."""

    def set_slots(self, stage: str, slots: int) -> object: ...


class Actuator:
    """Managers name nodes before they are there. Where a cluster gives names itself, both are kept: a node
    that comes unannounced is the first one still awaited of that region and size."""

    def __init__(self, nodes: Nodes, stages: Stages):
        self._nodes, self._stages = nodes, stages
        self._theirs: dict[str, str] = {}
        """By the managers' name, the cluster's."""
        self._awaited: dict[str, AddNode] = {}
        self._met: set[str] = set()

    def apply(self, actions: Iterable[Action], state: ElasticState) -> list[str]:
        """Does them in order; what failed is told and left to the next look, where it is seen."""
        failures, stages = [], dict[str, int]()
        for action in actions:
            change = action.change
            if isinstance(change, AddReplica | RemoveReplica):
                stages[change.stage] = state.ledger.replicas(change.stage)
                continue
            try:
                self._do(action)
            except PenstockError as error:
                failures.append(f"reconfiguration {action.reconfiguration}, {change}: {error}")
        for stage, slots in stages.items():
            try:
                self._stages.set_slots(stage, slots)
            except PenstockError as error:
                failures.append(f"{slots} slots for {stage}: {error}")
        for failure in failures:
            log.warning("not done: %s", failure)
        return failures

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
