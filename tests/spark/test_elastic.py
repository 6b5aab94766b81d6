"""Managers in the engine: what stages use comes in, and slots, nodes and a journal come out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, from_spool, readings, table

from penstock import Pipeline, Spool
from penstock.cli.main import main
from penstock.errors import PenstockError
from penstock.plan.elastic import Elasticity, ElasticState, Periods, Region
from penstock.spark.cluster.executors import ReplicaUse
from penstock.spark.cluster.nodes import Node
from penstock.spark.elastic import ElasticSettings

pytestmark = pytest.mark.spark
QUICK = Periods().scaled(1 / 60)
ONE_SPARE = Elasticity((), (Region("edge", reserve_slots=1, most_nodes=3),), QUICK)


@dataclass
class Cluster:
    """A cluster in memory: its nodes are there at once, and the replicas of one stage are always busy."""

    busy: str = ""
    there: dict[str, Node] = field(default_factory=lambda: {"edge-1": Node("edge-1", "edge", 1, "up")})
    used_seconds: float = 0.0

    def nodes(self) -> tuple[Node, ...]:
        return tuple(self.there.values())

    def use(self) -> tuple[ReplicaUse, ...]:
        self.used_seconds += 1000.0 if self.busy else 0.0
        return (ReplicaUse(self.busy, 0, "1", "edge-1", self.used_seconds, self.used_seconds, 1),)

    def start(self, cores: int, region: str, name: str = "") -> str:
        name = name or f"edge-{len(self.there) + 1}"
        self.there[name] = Node(name, region, cores, "up")
        return name

    def hide(self, name: str) -> None:
        self.there[name] = Node(name, "edge", 1, "hidden")

    def show(self, name: str) -> None:
        self.there[name] = Node(name, "edge", 1, "up")

    def release(self, name: str) -> None:
        del self.there[name]


def pipeline(source: Spool, kept: Kept) -> Pipeline:
    made = Pipeline("p")
    read = made.source("readings", from_spool(source))
    read.operator("double", lambda rows: rows.selectExpr("id", "2 * value as twice")).sink("out", kept.sink)
    return made


def test_a_busy_stage_gets_a_replica_and_a_node_and_gives_both_back(
    engine: EngineFactory, spool: SpoolFactory, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, kept, cluster = spool(), Kept(), Cluster()
    runs = engine(elastic=ElasticSettings(ONE_SPARE, nodes=cluster))
    runs.submit(pipeline(source, kept))
    source.append(table(readings(50, seconds=5)))
    assert runs.slots == {"p.double": 1}
    cluster.busy = "p.double"
    eventually(lambda: runs.slots == {"p.double": 2})
    eventually(lambda: len(cluster.there) == 3)
    cluster.busy = ""
    eventually(lambda: runs.slots == {"p.double": 1})
    eventually(lambda: len(cluster.there) == 2)
    runs.stop()
    assert sorted(row["id"] for row in kept.rows) == list(range(50))
    assert main(["explain", "--state", str(state)]) == 0
    assert "+1 replica" in capsys.readouterr().out


def test_nodes_that_are_there_before_the_first_pipeline_stay(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    there = {name: Node(name, "edge", 1, "up") for name in ("edge-1", "edge-2", "edge-3")}
    cluster = Cluster(there=there)
    runs = engine(elastic=ElasticSettings(ONE_SPARE, nodes=cluster))
    assert runs.elastic is not None
    runs.elastic.follow()
    assert runs.elastic.loop.state == ElasticState()
    runs.submit(pipeline(spool(), Kept()))
    eventually(lambda: len(cluster.there) == 2)


def test_managers_without_a_cluster_are_refused(engine: EngineFactory) -> None:
    with pytest.raises(PenstockError) as refused:
        engine(elastic=ElasticSettings())
    assert str(refused.value) == (
        "elastic replicas and nodes must be of a cluster, got none: name its master, or leave them out"
    )
