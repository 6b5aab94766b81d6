"""The paper's evaluation at the size of one machine: what a minute, a node and a word are here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.plan.elastic import Elasticity, FixedNodes, ManagedPipeline, ManagedStage, Periods, Region
from penstock.workloads.wordcount import OPERATORS, Ramp

PIPELINE = "wordcount"
REGION = "default"
SCENARIOS = ("static", "operators", "nodes", "model")
LABELS = {
    "static": "static",
    "operators": "elastic operators",
    "nodes": "elastic operators and nodes",
    "model": "elastic operators and nodes, model-based",
}
WORDS_PER_SENTENCE = 10
PAPER_MINUTE_SECONDS = 60.0
SETTLE_SECONDS = 20.0
"""Dividing state takes its time too."""


@dataclass(frozen=True)
class Scale:
    """E2DF, section 5, with time and rates divided; nodes and replicas are as many as in the paper."""

    minute: float = 15.0
    """Seconds here of a minute of the paper. A node starts within one, and an operator manager's period has
    some ticks: with less of them, replicas follow chance."""
    minutes: float = 60.0
    low: float = 0.125
    peak: float = 13.75
    """Sentences a second; a fortieth of the paper's."""
    tick: float = 1.0
    """Seconds. Sentences of one come together, so that turns leave processor time for nodes that start."""
    nodes: int = 16
    replicas: Mapping[str, int] = field(default_factory=lambda: {"split": 2, "count": 6, "publish": 6})
    """Of the static run."""
    reserve: int = 5
    """C_r and R_init."""
    model_reserve: int = 0
    """C_r of the model-based run, which plans ahead instead."""
    target_seconds: float = 2.0
    """E[T] that the model-based run plans for."""
    peak_share: float = 0.34
    """Of the static replicas' time that the rows of the peak take, beside what tasks take themselves: the
    paper gives no costs, and with these its rules need about as many replicas as they did there."""
    warmup: float = 25.0
    """Seconds before the ramp, of which nothing counts."""

    @property
    def ramp(self) -> Ramp:
        return Ramp(self.low, self.peak, self.minutes * self.minute)

    @property
    def warm_ramp(self) -> Ramp:
        """What one replica of each operator can carry."""
        rate = self.peak / max(self.replicas.values())
        return Ramp(rate, rate, self.warmup)

    @property
    def service(self) -> dict[str, float]:
        """Seconds of a word at each operator, by which static replicas are busy `peak_share` at the peak.

        Rows wait when they leave: also at `split`, whose rows out are words.
        """
        words = WORDS_PER_SENTENCE * self.peak
        return {name: self.peak_share * self.replicas[name] / words for name in OPERATORS}

    @property
    def periods(self) -> Periods:
        """The paper's, in compressed time; but a process takes as long to start as it takes."""
        usual = Periods()
        scaled = usual.scaled(self.minute / PAPER_MINUTE_SECONDS)
        settle = max(scaled.settle_seconds, SETTLE_SECONDS)
        return replace(scaled, start_seconds=usual.start_seconds, settle_seconds=settle)

    def first_replicas(self, scenario: str) -> dict[str, int]:
        return dict(self.replicas) if scenario == "static" else dict.fromkeys(OPERATORS, 1)

    def first_nodes(self, scenario: str) -> int:
        """Nodes at the start: all, or what the first replicas and the reserve take."""
        if scenario in ("static", "operators"):
            return self.nodes
        return min(self.nodes, len(OPERATORS) + self._reserve(scenario))

    def managers(self, scenario: str) -> Elasticity | None:
        """Who manages a run; nobody where it is static."""
        if scenario == "static":
            return None
        stages = tuple(self._stage(name, scenario) for name in OPERATORS)
        pipeline = ManagedPipeline(
            PIPELINE, stages, start_nodes=self.reserve, target_seconds=self.target_seconds
        )
        region = Region(REGION, reserve_slots=self._reserve(scenario), most_nodes=self.nodes)
        if scenario == "model":
            return Elasticity.model_based((pipeline,), (region,), self.periods)
        if scenario == "operators":
            return Elasticity((pipeline,), (region,), self.periods, region_policy=FixedNodes())
        return Elasticity((pipeline,), (region,), self.periods)

    def _stage(self, name: str, scenario: str) -> ManagedStage:
        """A model must not plan for more than the static run has: at the peak that is three times enough."""
        managed = ManagedStage(f"{PIPELINE}.{name}")
        return replace(managed, most_replicas=self.replicas[name]) if scenario == "model" else managed

    def _reserve(self, scenario: str) -> int:
        return self.model_reserve if scenario == "model" else self.reserve

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
