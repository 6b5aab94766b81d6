"""What managers are told at a look: nodes and stages as they are, with their use over the last period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.model import BulkService, MMk, StageModel


@dataclass(frozen=True)
class NodeSeen:
    """A node that takes tasks now, or did until it was sent away."""

    name: str
    region: str
    slots: int
    busy_share: float = 0.0
    """U_n."""
    leaving: bool = False
    """Whether it ends what runs on it and takes nothing new."""


@dataclass(frozen=True)
class StageSeen:
    """A stage that runs, with one share for each replica: `len(shares)` is the k of its turns."""

    shares: tuple[float, ...]
    """S_a: processor time of task a over the period, as a share of one slot."""
    rows_per_second: float = 0.0
    """The rest is for model-based policies. lambda."""
    row_seconds: float = 0.0
    """c1: slot seconds for a row, 1/mu."""
    fixed_seconds: float = 0.0
    """c0, of a turn; 0 where rows are served one by one."""
    segment_seconds: float = 0.0
    """g: between the segments that rows come in; 0 where that is not known, as no turn ends before the next
    rows are there."""
    weight: float = 1.0
    """How often an input pays E[T_i]."""
    since: float = 0.0
    """When it began to run on these replicas, where that is known: dividing state takes its time."""
    cold: bool = False
    """Whether some of its tasks loaded code, on nodes that are new to it: shares leave those out."""

    @property
    def known(self) -> bool:
        """Whether a model can be made of it."""
        return self.row_seconds > 0.0

    def model(self, rows_per_second: float) -> StageModel:
        """E[T_i](k) at that rate: M/M/k, or bulk service where turns have a cost of their own."""
        if self.fixed_seconds > 0.0:
            return BulkService(
                rows_per_second,
                self.fixed_seconds,
                self.row_seconds,
                segment_seconds=self.segment_seconds,
            )
        return MMk(rows_per_second, 1.0 / self.row_seconds)


@dataclass(frozen=True)
class Failure:
    """An action that was decided and could not be done."""

    reconfiguration: int
    reason: str


@dataclass(frozen=True)
class Observation:
    """One look at everything."""

    now: float
    nodes: tuple[NodeSeen, ...]
    stages: Mapping[str, StageSeen] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    """Since the last look."""

    def to_json(self) -> dict[str, Any]:
        """A dict for `json.dumps`."""
        return {
            "now": self.now,
            "nodes": [dict(vars(node)) for node in self.nodes],
            "stages": {
                name: {**vars(stage), "shares": list(stage.shares)} for name, stage in self.stages.items()
            },
            "failures": [dict(vars(each)) for each in self.failures],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Observation:
        return cls(
            stored["now"],
            tuple(NodeSeen(**node) for node in stored["nodes"]),
            {
                name: StageSeen(**{**stage, "shares": tuple(stage["shares"])})
                for name, stage in stored["stages"].items()
            },
            tuple(Failure(**each) for each in stored.get("failures", ())),
        )
