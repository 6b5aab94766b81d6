"""What is remembered between looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.plan.elastic.changes import Level, Proposal
from penstock.plan.elastic.global_policy import Memory
from penstock.plan.elastic.nodes import Ledger, Node


@dataclass(frozen=True)
class ScaleIn:
    """A node out of view whose replicas are to go elsewhere."""

    node: str
    reconfiguration: int
    asked_at: float
    waiting: tuple[str, ...]
    """Pipelines that have not answered yet."""
    refusal: str = ""


@dataclass(frozen=True)
class SlotRequest:
    """An application manager asks the other side for a slot."""

    region: str
    stage: str
    reconfiguration: int


@dataclass(frozen=True)
class ElasticState:
    """All managers' knowledge; `ElasticState()` at the start."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    homes: Mapping[str, str] = field(default_factory=dict)
    """The region of each stage."""
    due: Mapping[Level, float] = field(default_factory=dict)
    """When the managers of each level look next."""
    waiting: tuple[Proposal, ...] = ()
    """Proposals without a verdict yet."""
    scale_ins: Mapping[str, ScaleIn] = field(default_factory=dict)
    requests: tuple[SlotRequest, ...] = ()
    memory: Mapping[str, Memory] = field(default_factory=dict)
    """Of the global policies, by manager."""
    needs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By pipeline and region, slots that its manager told it will need."""
    open: Mapping[str, int] = field(default_factory=dict)
    """Reconfigurations that are not done, by what they are for."""
    took: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By region, reconfigurations that took slots since the infrastructure manager looked."""
    gave: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By region, reconfigurations that gave slots back which neither a replica took nor a node left with."""
    left_alone: Mapping[str, float] = field(default_factory=dict)
    """Nodes whose scale-in was cancelled, and until when it is not tried again."""
    changed_at: Mapping[str, float] = field(default_factory=dict)
    """By stage, when its replicas last changed."""
    named: Mapping[str, int] = field(default_factory=dict)
    """By region, how many nodes were named so far."""
    last_reconfiguration: int = 0
