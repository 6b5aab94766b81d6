"""What is managed: pipelines and their stages, regions and their nodes, and how often each manager looks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from penstock.plan.elastic.nodes import ElasticError, NodeKind

NEARLY = 0.1
"""Of a period, what may lack to a whole one: looks come a little late, and changes take a moment."""


@dataclass(frozen=True)
class ManagedStage:
    """A stage whose replicas are managed."""

    name: str
    """`pipeline.operator`, as everywhere."""
    region: str = ""
    """Where it runs; "" goes where the stage before it runs, else where there is most room."""
    replicas: int = 1
    """At the start."""
    most_replicas: int = 1_000
    elastic: bool = True
    """Whether an operator manager looks after it; a source, say, stays as it is."""
    critical: bool = False
    """Whether its node is never given up for the sake of fewer nodes."""

    def __post_init__(self) -> None:
        if not 1 <= self.replicas <= self.most_replicas:
            raise ElasticError(
                f"stage {self.name!r} must start with 1 to {self.most_replicas} replicas, got "
                f"{self.replicas}: it could not run"
            )


@dataclass(frozen=True)
class ManagedPipeline:
    """The stages of one application manager, each after those it reads."""

    name: str
    stages: tuple[ManagedStage, ...]
    start_nodes: int = 5
    """R_init: over how many nodes of a region its first replicas are spread."""
    target_seconds: float = inf
    """E[T] that the model-based policy plans for."""

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) < len(names):
            raise ElasticError(
                f"pipeline {self.name!r} must have stages of different names, got {names}: "
                "no replica could be told from another"
            )
        if self.start_nodes < 1 or not self.target_seconds > 0.0:
            raise ElasticError(
                f"pipeline {self.name!r} must start on at least 1 node with a positive target, got "
                f"{self.start_nodes} nodes and {self.target_seconds} s: no plan could be made"
            )

    def stage(self, name: str) -> ManagedStage:
        """The stage of that name; KeyError if there is none."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)


@dataclass(frozen=True)
class Region:
    """A data centre, or any set of nodes among which replicas may move."""

    name: str
    kinds: tuple[NodeKind, ...] = (NodeKind(1),)
    """What can be started there."""
    reserve_slots: int = 5
    """C_r: free slots that shall be there for new replicas."""
    low_share: float = 0.1
    """U_low: a node that is busy no more than that may be given up."""
    most_nodes: int = 1_000

    def __post_init__(self) -> None:
        if not self.name or not self.kinds:
            raise ElasticError(
                f"a region must have a name and at least 1 kind of node, got {self.name!r} with "
                f"{len(self.kinds)}: no node could be started there"
            )
        if self.reserve_slots < 0 or not 0.0 <= self.low_share <= 1.0 or self.most_nodes < 1:
            raise ElasticError(
                f"region {self.name!r} must have a reserve of 0 or more, a low share from 0 to 1 and at "
                f"least 1 node, got {self.reserve_slots}, {self.low_share} and {self.most_nodes}: "
                "no node would ever be right"
            )

    @property
    def smallest(self) -> NodeKind:
        """The kind with the fewest slots, of those the cheapest."""
        return min(self.kinds, key=lambda kind: (kind.slots, kind.price))


@dataclass(frozen=True)
class Periods:
    """How often each manager looks, and how long it waits for others: the paper's times.

    >>> Periods().scaled(0.1).region_seconds
    6.0
    """

    operator_seconds: float = 30.0
    application_seconds: float = 30.0
    region_seconds: float = 60.0
    infrastructure_seconds: float = 60.0
    scale_in_seconds: float = 120.0
    """A node that has not been given up by then comes back."""
    retry_seconds: float = 600.0
    """For so long a node that came back is left alone."""
    start_seconds: float = 180.0
    """A node that has not come by then is not counted on any more."""
    settle_seconds: float = 60.0
    """A stage that runs on other slots than granted for so long is taken as it is."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0.0 < value < inf:
                raise ElasticError(
                    f"{name} must be positive and finite, got {value}: a manager would look all the time "
                    "or never"
                )

    def scaled(self, factor: float) -> Periods:
        """All of them, times `factor`: a run in which time is compressed."""
        return replace(self, **{name: factor * value for name, value in vars(self).items()})
