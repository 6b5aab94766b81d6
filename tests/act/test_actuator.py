"""Actions end in a cluster's calls and in slots of stages, by names that both sides understand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from penstock.act import Actuator, ElasticLoop, UseMeter, stage_seen
from penstock.act.cluster import COLD
from penstock.errors import PenstockError
from penstock.measure.profiles import StageProfile
from penstock.measure.stage_meter import StageMeter
from penstock.plan.elastic import (
    Action,
    AddNode,
    AddReplica,
    Consolidate,
    Elasticity,
    ElasticState,
    Failure,
    HideNode,
    Ledger,
    ManagedPipeline,
    ManagedStage,
    Move,
    Observation,
    Periods,
    Record,
    Region,
    ReleaseNode,
    RemoveReplica,
    ShowNode,
    StageSeen,
    replay,
)


@dataclass(frozen=True)
class Worker:
    name: str
    region: str
    cores: int
    state: str = "up"


@dataclass(frozen=True)
class Used:
    stage: str
    replica: int
    node: str
    cpu_seconds: float
    run_seconds: float


@dataclass
class SmallCluster:
    """Workers that are up at once."""

    workers: dict[str, Worker] = field(default_factory=dict)
    uses: list[Used] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    slots: dict[str, int] = field(default_factory=dict)
    names_itself: bool = False

    def nodes(self) -> tuple[Worker, ...]:
        return tuple(self.workers.values())

    def use(self) -> tuple[Used, ...]:
        return tuple(self.uses)

    def start(self, cores: int, region: str, name: str = "") -> str:
        awaited = f"awaited-{len(self.workers)}" if self.names_itself else name
        name = f"executor-{len(self.workers)}" if self.names_itself else name
        self.workers[name] = Worker(name, region, cores)
        return awaited

    def hide(self, name: str) -> None:
        self.calls.append(f"hide {name}")

    def show(self, name: str) -> None:
        self.calls.append(f"show {name}")

    def release(self, name: str) -> None:
        if name not in self.workers:
            raise PenstockError(f"there is no {name}")
        del self.workers[name]
        self.calls.append(f"release {name}")

    def set_slots(self, slots: Mapping[str, int], reason: str = "") -> None:
        self.slots.update(slots)
        self.calls.append(reason)


def test_nodes_have_the_names_that_managers_gave_them() -> None:
    cluster = SmallCluster()
    actuator = Actuator(cluster, cluster)
    changes = (AddNode("edge-7", "edge", 2), HideNode("edge-7"), ShowNode("edge-7"), HideNode("old"))
    assert actuator.apply([Action(1, change) for change in changes], ElasticState()) == []
    assert cluster.nodes() == (Worker("edge-7", "edge", 2),)
    assert cluster.calls == ["hide edge-7", "show edge-7", "hide old"]
    assert [actuator.name_of(node) for node in cluster.nodes()] == ["edge-7"]


def test_where_a_cluster_gives_names_itself_both_are_kept() -> None:
    cluster = SmallCluster({"old": Worker("old", "edge", 2)}, names_itself=True)
    actuator = Actuator(cluster, cluster)
    assert [actuator.name_of(node) for node in cluster.nodes()] == ["old"]
    changes = (AddNode("edge-7", "edge", 2), AddNode("edge-8", "edge", 2))
    actuator.apply([Action(1, change) for change in changes], ElasticState())
    for _ in range(2):
        assert [actuator.name_of(node) for node in cluster.nodes()] == ["old", "edge-7", "edge-8"]
    actuator.apply([Action(2, ReleaseNode("edge-7"))], ElasticState())
    assert cluster.calls == ["release executor-1"]


def test_a_stage_gets_the_slots_of_the_ledger_once_whatever_was_done_to_it() -> None:
    cluster = SmallCluster()
    state = ElasticState(ledger=Ledger({"p.s": ("a", "b", "c")}))
    changes = (AddReplica("p.s", "b"), AddReplica("p.s", "c"), RemoveReplica("p.s", 0, "d"))
    Actuator(cluster, cluster).apply([Action(1, change) for change in changes], state)
    assert (cluster.slots, cluster.calls) == ({"p.s": 3}, ["reconfiguration 1"])


def test_a_node_goes_after_the_slots_it_was_for() -> None:
    cluster = SmallCluster({"a": Worker("a", "edge", 1)})
    state = ElasticState(ledger=Ledger({"p.s": ("b",)}))
    changes = (ReleaseNode("a"), RemoveReplica("p.s", 0, "a"), AddNode("c", "edge", 1))
    Actuator(cluster, cluster).apply([Action(2, change) for change in changes], state)
    assert cluster.calls == ["reconfiguration 2", "release a"]
    assert list(cluster.workers) == ["c"]


def test_what_fails_is_told_and_the_rest_is_done() -> None:
    cluster = SmallCluster({"a": Worker("a", "edge", 1)})
    changes = (ReleaseNode("none"), Consolidate("a", "p", (Move("p.s", 0, "b"),)), ReleaseNode("a"))
    failed = Actuator(cluster, cluster).apply([Action(4, change) for change in changes], ElasticState())
    assert failed == [Failure(4, "none decommissioned: there is no none")]
    assert cluster.calls == ["release a"]


def test_what_fails_in_a_way_nobody_thought_of_keeps_nothing_else_from_being_done() -> None:
    class Full(SmallCluster):
        def start(self, cores: int, region: str, name: str = "") -> str:
            raise OSError("too many open files")

        def set_slots(self, slots: Mapping[str, int], reason: str = "") -> None:
            raise RuntimeError("the bridge is gone")

    cluster = Full({"a": Worker("a", "edge", 1)})
    changes = (AddNode("b", "edge", 1), AddReplica("p.s", "a"), ReleaseNode("a"))
    state = ElasticState(ledger=Ledger({"p.s": ("a", "a")}))
    failed = Actuator(cluster, cluster).apply([Action(5, change) for change in changes], state)
    assert failed == [
        Failure(5, "node b of 1 slot in edge: too many open files"),
        Failure(5, "2 slots for p.s: the bridge is gone"),
    ]
    assert cluster.calls == ["release a"]


def test_use_since_the_last_look_becomes_shares() -> None:
    nodes = (Worker("a", "edge", 2), Worker("b", "edge", 1), Worker("c", "edge", 1, "starting"))
    stages = {"p.s": StageSeen((0.1, 0.1), rows_per_second=9.0), "p.small": StageSeen((0.2,))}
    meter = UseMeter()
    first = meter.look(100.0, nodes, [Used("p.s", 0, "a", 50.0, 60.0)], stages)
    assert first.stages["p.s"].shares == (0.1, 0.1)
    uses = [Used("p.s", 0, "a", 53.0, 70.0), Used("p.s", 0, "b", 2.0, 2.0), Used("p.s", 1, "a", 4.0, 9.0)]
    then = meter.look(110.0, nodes, [*uses, Used("p.s", 7, "b", 1.0, 1.0)], stages)
    assert then.stages["p.s"].shares == (0.5, 0.4)
    assert then.stages["p.s"].rows_per_second == 9.0
    assert then.stages["p.small"].shares == (0.2,)
    assert [(node.name, node.busy_share) for node in then.nodes] == [("a", 0.35), ("b", 0.3)]


def test_tasks_before_a_shuffle_are_all_replicas_alike() -> None:
    meter, stages = UseMeter(), {"p.s": StageSeen((0.0, 0.0))}
    meter.look(0.0, (), [], stages)
    uses = [Used("p.s", -1, "a", 2.0, 2.0), Used("p.s", 0, "a", 3.0, 3.0), Used("p.s", 1, "b", 3.0, 3.0)]
    seen = meter.look(10.0, (Worker("a", "edge", 1),), uses, stages)
    assert seen.stages["p.s"].shares == (0.4, 0.4)
    assert seen.nodes[0].busy_share == 0.5


def test_tasks_that_load_code_are_no_replicas_use_but_their_nodes() -> None:
    meter, stages = UseMeter(10.0), {"p.s": StageSeen((0.0, 0.0))}
    meter.look(0.0, (), [], stages)
    uses = [Used("p.s", COLD, "a", 6.0, 6.0), Used("p.s", 0, "a", 1.0, 1.0)]
    seen = meter.look(10.0, (Worker("a", "edge", 1),), uses, stages)
    assert (seen.stages["p.s"].shares, seen.stages["p.s"].cold) == ((0.1, 0.0), True)
    assert seen.nodes[0].busy_share == 0.7
    assert not meter.look(20.0, (), [*uses, Used("p.s", 1, "a", 1.0, 1.0)], stages).stages["p.s"].cold


def test_a_look_that_comes_a_little_late_does_not_double_the_window() -> None:
    meter, stages = UseMeter(7.5), {"p.s": StageSeen((0.0,))}
    for now, used in ((0.0, 0.0), (7.65, 0.0)):
        meter.look(now, (), [Used("p.s", 0, "a", used, used)], stages)
    then = meter.look(15.0, (), [Used("p.s", 0, "a", 7.35, 7.35)], stages)
    assert then.stages["p.s"].shares == (1.0,)


def test_time_in_tasks_counts_where_it_is_asked_for() -> None:
    meter, stages = UseMeter(time="run"), {"p.s": StageSeen((0.0,))}
    meter.look(0.0, (), [], stages)
    assert meter.look(10.0, (), [Used("p.s", 0, "a", 1.0, 8.0)], stages).stages["p.s"].shares == (0.8,)


def test_shares_are_over_a_whole_window_however_often_is_looked() -> None:
    meter, stages, shares = UseMeter(30.0), {"p.s": StageSeen((0.0,))}, []
    used = {0: 0.0, 20: 10.0, 30: 20.0, 40: 20.0, 60: 26.0, 61: 27.0}
    for now, seconds in used.items():
        shares += meter.look(float(now), (), [Used("p.s", 0, "a", seconds, 0.0)], stages).stages["p.s"].shares
    # At 40 and 61 since 0 and 30, the last looks that were a window ago.
    assert shares == pytest.approx([0.0, 0.5, 20 / 30, 20 / 40, 6 / 30, 7 / 31])


def test_use_that_was_estimated_too_high_counts_as_none_and_not_as_all_there_ever_was() -> None:
    meter, stages = UseMeter(), {"p.s": StageSeen((0.0,))}
    meter.look(0.0, (), [Used("p.s", 0, "a", 105.0, 105.0)], stages)
    assert meter.look(30.0, (), [Used("p.s", 0, "a", 101.0, 101.0)], stages).stages["p.s"].shares == (0.0,)


def test_the_loop_looks_when_a_manager_is_due_and_keeps_what_can_be_replayed() -> None:
    cluster, kept = SmallCluster(), list[Record]()
    elasticity = Elasticity(
        (ManagedPipeline("p", (ManagedStage("p.s"),)),),
        (Region("edge", reserve_slots=1),),
        Periods().scaled(0.1),
    )
    actuator, meter = Actuator(cluster, cluster), UseMeter()

    def observe(now: float) -> Observation:
        stages = {name: StageSeen((0.0,) * slots) for name, slots in cluster.slots.items()}
        return meter.look(now, cluster.nodes(), cluster.use(), stages, actuator.name_of)

    loop = ElasticLoop(elasticity, observe, actuator, kept.append)
    looked = [now for now in range(60) if loop.look(float(now)) is not None]
    assert looked == list(range(0, 60, 3))
    assert [actuator.name_of(node) for node in cluster.nodes()] == ["edge-1", "edge-2"]
    assert dict(loop.state.ledger.places) == {"p.s": ("edge-1",)}
    assert replay(elasticity, kept) == tuple(each for record in kept for each in record.decisions)


def test_what_could_not_be_done_is_in_the_log_and_is_replayed() -> None:
    class Refusing(SmallCluster):
        def start(self, cores: int, region: str, name: str = "") -> str:
            raise PenstockError("there is no room for it")

    cluster, kept = Refusing(), list[Record]()
    elasticity = Elasticity((ManagedPipeline("p", (ManagedStage("p.s"),)),), (Region("edge"),))
    loop = ElasticLoop(elasticity, lambda now: Observation(now, ()), Actuator(cluster, cluster), kept.append)
    for now in (0.0, 30.0):
        loop.look(now)
    told = [each for each in kept[1].decisions if each.kind == "seen"]
    assert told[0].reason == "not done: node edge-1 of 1 slot in edge: there is no room for it"
    asked = next(each for each in kept[0].decisions if str(each.change) == "node edge-1 of 1 slot in edge")
    assert told[0].reconfiguration == asked.reconfiguration
    again = [Record.from_json(each.to_json()) for each in kept]
    assert replay(elasticity, again) == tuple(each for record in kept for each in record.decisions)


def test_the_next_look_is_when_a_manager_is_due_and_a_second_later_at_most() -> None:
    cluster = SmallCluster()
    elasticity = Elasticity((), (Region("edge", reserve_slots=0),), Periods().scaled(0.05))
    loop = ElasticLoop(elasticity, lambda now: Observation(now, ()), Actuator(cluster, cluster))
    assert loop.next_look(10.0) == 11.0
    loop.look(10.0)
    assert loop.next_look(10.2) == 11.2
    assert loop.next_look(11.2) == 11.5
    assert loop.next_look(11.6) == pytest.approx(11.65)


def test_a_stage_is_seen_by_its_figures_and_its_costs() -> None:
    figures = replace(StageMeter(0.0).figures(60.0), slot_seconds=90.0, arrival_rows_per_second=50.0)
    profile = StageProfile(0.02, 1.0, fixed_seconds=0.1, row_seconds=0.004, turns=9)
    seen = stage_seen(figures, 3, profile)
    # A turn of n rows takes c0 + c1 n / k: what a row takes of one slot is k times what was learned.
    assert seen == StageSeen((0.5, 0.5, 0.5), 50.0, pytest.approx(0.012), 0.1)
    assert seen.known
    assert not stage_seen(figures, 3, None).known
    assert not stage_seen(figures, 3, replace(profile, turns=2)).known


def test_a_stage_with_time_to_spare_is_fed_in_as_many_segments_as_it_has_turns() -> None:
    profile = StageProfile(0.02, 1.0, fixed_seconds=0.1, row_seconds=0.004, turns=9)
    figures = replace(StageMeter(0.0).figures(60.0), turns=30, utilisation=0.6)
    assert stage_seen(figures, 3, profile).segment_seconds == 2.0
    # Always busy, it takes what has come meanwhile: its turns tell nothing of segments.
    assert stage_seen(replace(figures, utilisation=0.97), 3, profile).segment_seconds == 0.0
