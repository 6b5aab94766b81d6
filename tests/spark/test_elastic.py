"""Managers in the engine: what stages use comes in, and slots, nodes and a journal come out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually
from tests.spark.streams import Kept, from_spool, readings, table

from penstock import Pipeline, Spool, sinks
from penstock.act.cluster import COLD, NO_REPLICA
from penstock.cli.main import main
from penstock.errors import PenstockError
from penstock.plan.controller_state import SlotSettings
from penstock.plan.elastic import (
    AddNode,
    Decision,
    Elasticity,
    ElasticState,
    HideNode,
    ManagedPipeline,
    ManagedStage,
    Observation,
    Periods,
    Record,
    Region,
    ShowNode,
)
from penstock.spark.cluster.executors import ExecutorWatch, ReplicaUse
from penstock.spark.cluster.nodes import Node
from penstock.spark.elastic import ElasticSettings, check_elastic, node_changes
from penstock.spark.kept_lines import KeptLines
from penstock.spark.open_queues import folders_outside
from penstock.spark.stage_base import own_pool
from penstock.stages.fuse import cut

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


def pipeline(source: Spool, kept: Kept, name: str = "p") -> Pipeline:
    made = Pipeline(name)
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


def test_managers_that_start_anew_go_on_with_numbers_and_names(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    lines = KeptLines(state, "elastic")
    state.mkdir(exist_ok=True)
    added = Decision(1.0, 41, "infrastructure", "all", "granted", AddNode("edge-7", "edge", 1), "why")
    lines.add([Record(Observation(1.0, ()), (added,)).to_json()])
    cluster = Cluster()
    runs = engine(elastic=ElasticSettings(ONE_SPARE, nodes=cluster))
    runs.submit(pipeline(spool(), Kept()))
    eventually(lambda: set(cluster.there) == {"edge-1", "edge-8"})
    assert runs.elastic is not None
    assert runs.elastic.loop.state.last_reconfiguration >= 42


def test_a_target_that_changes_is_planned_for_and_so_is_a_second_pipeline(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    runs = engine(elastic=ElasticSettings(ONE_SPARE, nodes=Cluster()))
    runs.submit(pipeline(spool(), Kept()))
    runs.submit(pipeline(spool("second"), Kept(), "q"))
    assert runs.elastic is not None
    loop = runs.elastic.loop
    eventually(lambda: set(loop.state.ledger.places) == {"p.double", "q.double"})
    runs.set_latency("p", "out", "250ms")
    eventually(lambda: [each.target_seconds for each in loop.elasticity.pipelines] == [0.25, inf])


def test_a_pipeline_that_managers_know_otherwise_is_refused(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    known = ManagedPipeline("p", (ManagedStage("p.triple"),))
    settings = ElasticSettings(replace(ONE_SPARE, pipelines=(known,)), nodes=Cluster())
    with pytest.raises(PenstockError) as refused:
        engine(elastic=settings).submit(pipeline(spool(), Kept()))
    assert str(refused.value) == (
        "managers must name the stages that pipeline 'p' has, p.double, got p.triple: slots would be changed "
        "of stages that are not there"
    )


def test_slots_are_changed_by_managers_or_by_the_controller(engine: EngineFactory) -> None:
    with pytest.raises(PenstockError) as refused:
        engine(
            elastic=ElasticSettings(ONE_SPARE, nodes=Cluster()), slot_control=SlotSettings("least-latency", 2)
        )
    assert str(refused.value) == (
        "slots of stages must be changed by one side, got both elastic and slot_control: they would undo "
        "each other's changes. Leave one out"
    )


def test_what_is_done_between_turns_counts_for_no_stage() -> None:
    class Context:
        pool: str | None = "p.earlier"

        def getLocalProperty(self, name: str) -> str | None:
            return self.pool

        def setLocalProperty(self, name: str, value: str | None) -> None:
            self.pool = value

    context = Context()
    with own_pool(SimpleNamespace(java_context=context)):  # type: ignore[arg-type]
        assert context.pool is None
    assert context.pool == "p.earlier"


def test_tasks_before_a_shuffle_are_no_replicas_own(spark: SparkSession) -> None:
    watch = ExecutorWatch(spark)

    def replicas() -> set[int]:
        return {each.replica for each in watch.use() if each.stage == "p.dealt"}

    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "p.dealt")
    try:
        for seen in ({COLD}, {COLD, NO_REPLICA, 0, 1}):
            spark.range(100, numPartitions=1).repartition(2).write.format("noop").mode("overwrite").save()
            eventually(lambda seen=seen: seen <= replicas())  # type: ignore[misc]
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)
        watch.close()


def test_the_first_task_of_a_stage_on_an_executor_is_not_counted(spark: SparkSession) -> None:
    watch = ExecutorWatch(spark)

    def tasks(cold: bool = False) -> int:
        use = [each for each in watch.use() if each.stage == "p.cold"]
        return sum(each.tasks for each in use if (each.replica == COLD) == cold)

    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "p.cold")
    try:
        for counted in range(3):
            spark.range(100, numPartitions=1).write.format("noop").mode("overwrite").save()
            eventually(lambda counted=counted: tasks() == counted)  # type: ignore[misc]
            eventually(lambda: tasks(cold=True) == 1)
        assert (watch.cold_tasks("p.cold"), watch.cold_tasks("p.other")) == (1, 0)
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)
        watch.close()


def test_nodes_that_go_out_of_view_and_come_back_are_told_of() -> None:
    decisions = [
        Decision(1.0, 1, "infrastructure", "all", "granted", HideNode("edge-1"), "until it is given up"),
        Decision(2.0, 1, "infrastructure", "all", "cancelled", ShowNode("edge-1"), "refused by p"),
        Decision(3.0, 1, "infrastructure", "all", "refused", AddNode("edge-2", "edge", 1), "no more"),
    ]
    assert node_changes(decisions) == [
        ("edge-1", "edge-1 out of view", "until it is given up"),
        ("edge-1", "edge-1 back in view", "refused by p"),
    ]


class OnACluster:
    """What is asked of a session that runs on one."""

    def __init__(self, **settings: str):
        conf = {name.replace("_", "."): value for name, value in settings.items()}
        self.sparkContext = SimpleNamespace(master="spark://here:7077", getConf=lambda: conf)


REGIONS = Elasticity((), (Region("eu"), Region("us")))


@pytest.mark.parametrize(
    ("settings", "region", "why"),
    [
        (
            ElasticSettings(cluster=Path("cluster")),
            "eu",
            "managers must have the engine's region 'eu' and no other, got default: nodes elsewhere would be "
            "started and never used. Give each region an engine of its own",
        ),
        (
            ElasticSettings(REGIONS),
            None,
            "executors that the cluster manager allocates must be of 1 region, got eu, us: give each region "
            "an engine of its own",
        ),
        (
            ElasticSettings(),
            None,
            "nodes of region 'default' must have as many slots as executors have cores, 4 "
            "(spark.executor.cores), got 1: no node that is awaited would ever come",
        ),
    ],
)
def test_nodes_that_the_session_could_not_use_are_refused(
    settings: ElasticSettings, region: str | None, why: str
) -> None:
    with pytest.raises(PenstockError) as refused:
        check_elastic(settings, OnACluster(spark_executor_cores="4"), region, None)  # type: ignore[arg-type]
    assert str(refused.value) == why


def test_several_regions_of_one_session_are_told_to_be_a_ledger(caplog: pytest.LogCaptureFixture) -> None:
    settings = ElasticSettings(REGIONS, cluster=Path("cluster"))
    check_elastic(settings, OnACluster(), None, None)  # type: ignore[arg-type]
    assert "regions are counted in the ledger only" in caplog.text


def test_queues_and_sinks_outside_the_state_directory_are_found(spool: SpoolFactory, tmp_path: Path) -> None:
    source = spool()
    made = Pipeline("p")
    rows = made.source("readings", from_spool(source))
    rows.operator("double", lambda rows: rows).sink("files", sinks.Parquet(tmp_path / "out"))
    outside = list(folders_outside(cut(made), Path("/shared/state")))
    assert outside == [
        (source.path, "the spool of source 'readings'"),
        (tmp_path / "out", "the folder of sink 'files'"),
    ]
    assert list(folders_outside(cut(made), Path("/"))) == []


def test_managers_without_a_cluster_are_refused(engine: EngineFactory) -> None:
    with pytest.raises(PenstockError) as refused:
        engine(elastic=ElasticSettings())
    assert str(refused.value) == (
        "elastic replicas and nodes must be of a cluster, got none: name its master, or leave them out"
    )
