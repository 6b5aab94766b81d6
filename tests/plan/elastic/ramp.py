"""The paper's WordCount: 5 to 550 to 5 tuples/s, beside 2/6/6 replicas on 16 nodes that stay (section 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from tests.plan.elastic.plant import Plant, PlantStage, Run

from penstock.plan.elastic import Elasticity, FixedNodes, ManagedPipeline, ManagedStage, NodeSeen, Region

SECONDS = 3600
STATIC = {"wc.source": 1, "wc.split": 2, "wc.count": 6, "wc.publish": 6}
STATIC_NODES = 16
COSTS = {
    # Chosen so that the static replicas are busy 37% of the time at the peak: the paper gives no costs.
    "wc.source": PlantStage(0.00001),
    "wc.split": PlantStage(0.74 / 550),
    "wc.count": PlantStage(2.2 / 5500, rows_per_input=10.0),
    "wc.publish": PlantStage(2.2 / 5500, rows_per_input=10.0),
}
STAGES = (
    ManagedStage("wc.source", elastic=False, critical=True),
    ManagedStage("wc.split"),
    ManagedStage("wc.count"),
    ManagedStage("wc.publish"),
)


def ramp(now: float) -> float:
    return 5.0 + 545.0 * (1.0 - abs(2.0 * now / SECONDS - 1.0))


@dataclass(frozen=True)
class Figures:
    """Means over a run."""

    replicas: float
    nodes: float
    latency_seconds: float

    def savings(self, other: Figures) -> tuple[float, float]:
        """Of replicas and nodes, beside another run."""
        return 1.0 - self.replicas / other.replicas, 1.0 - self.nodes / other.nodes


def figures(plant: Plant) -> Figures:
    return Figures(plant.replicas_seconds / SECONDS, plant.node_seconds / SECONDS, fmean(plant.latencies))


def plant_of(nodes: int, rate: Callable[[float], float] = ramp, noise: float = 0.02) -> Plant:
    stages = {name: PlantStage(stage.row_seconds, stage.rows_per_input) for name, stage in COSTS.items()}
    there = {f"cloud-{n}": NodeSeen(f"cloud-{n}", "cloud", 1) for n in range(1, nodes + 1)}
    return Plant(rate, stages, there, tick_seconds=1.0, noise=noise)


def static() -> Figures:
    plant = plant_of(STATIC_NODES)
    for name, count in STATIC.items():
        plant.stages[name].replicas = count
    plant.advance(SECONDS)
    return figures(plant)


def paper() -> Run:
    pipeline = ManagedPipeline("wc", STAGES, start_nodes=5)
    return Run(Elasticity((pipeline,), (Region("cloud", reserve_slots=5, low_share=0.1),)), plant_of(5))


def elastic_replicas() -> Run:
    """The second scenario: nodes stay as they are."""
    pipeline = ManagedPipeline("wc", STAGES, start_nodes=5)
    region = Region("cloud", most_nodes=STATIC_NODES)
    return Run(Elasticity((pipeline,), (region,), region_policy=FixedNodes()), plant_of(STATIC_NODES))


def model_based(target_seconds: float) -> Run:
    pipeline = ManagedPipeline("wc", STAGES, target_seconds=target_seconds)
    return Run(Elasticity.model_based((pipeline,), (Region("cloud", reserve_slots=1),)), plant_of(5))
