"""All four managers together, look by look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from penstock.plan.elastic import (
    AddNode,
    AddReplica,
    Change,
    Consolidate,
    Decision,
    ElasticError,
    Elasticity,
    ElasticState,
    HideNode,
    ManagedPipeline,
    ManagedStage,
    Move,
    NodeKind,
    NodeSeen,
    Observation,
    Periods,
    Region,
    ReleaseNode,
    RemoveReplica,
    ShowNode,
    StageSeen,
)

S = ManagedStage("p.s")


class Managed:
    """Managers that are told by hand what is seen."""

    def __init__(
        self,
        *stages: ManagedStage,
        region: Region | None = None,
        slots: int = 1,
        nodes: int = 2,
        reserve: int = 0,
    ):
        pipeline = ManagedPipeline("p", stages or (S,))
        region = region or Region("here", (NodeKind(slots),), reserve_slots=reserve)
        self.elasticity = Elasticity((pipeline,), (region,))
        self.state = ElasticState()
        self.nodes = {f"n{n}": NodeSeen(f"n{n}", "here", slots) for n in range(nodes)}
        self.now = -30.0
        self.decisions: list[Decision] = []

    def look(
        self,
        shares: Mapping[str, tuple[float, ...]] | None = None,
        seconds: float = 30.0,
        since: float = 0.0,
    ) -> list[Change]:
        self.now += seconds
        stages = {name: StageSeen(each, since=since) for name, each in (shares or {}).items()}
        step = self.elasticity.step(self.state, Observation(self.now, tuple(self.nodes.values()), stages))
        self.state = step.state
        self.decisions += step.decisions
        return [action.change for action in step.actions]

    def told(self, kind: str) -> list[str]:
        return [f"{each.level}: {each.reason}" for each in self.decisions if each.kind == kind]


def test_the_periods_are_those_of_the_paper_and_scale() -> None:
    periods = Periods()
    assert (periods.operator_seconds, periods.application_seconds) == (30.0, 30.0)
    assert (periods.region_seconds, periods.infrastructure_seconds) == (60.0, 60.0)
    assert periods.scaled(0.05).scale_in_seconds == 6.0


def test_a_pipeline_starts_on_the_nodes_there_are() -> None:
    managed = Managed(S, ManagedStage("p.t", replicas=2), nodes=3)
    assert managed.look() == [AddReplica("p.s", "n0"), AddReplica("p.t", "n1"), AddReplica("p.t", "n2")]


def test_a_pipeline_that_runs_already_is_taken_as_it_is() -> None:
    managed = Managed(slots=4)
    managed.look({"p.s": (0.5, 0.5, 0.5)})
    assert managed.state.ledger.replicas("p.s") == 3


def test_each_manager_looks_in_its_own_time() -> None:
    managed = Managed(region=Region("here", reserve_slots=3), nodes=4)
    managed.look()
    del managed.nodes["n3"]
    assert managed.look(seconds=10.0) == []
    assert managed.look(seconds=49.0) == []
    assert managed.look(seconds=1.0) == [AddNode("here-1", "here", 1)]


def test_a_manager_that_was_late_does_not_look_twice() -> None:
    managed = Managed()
    managed.look()
    managed.look(seconds=95.0)
    assert managed.state.due == {
        "operator": 120.0,
        "application": 120.0,
        "region": 120.0,
        "infrastructure": 120.0,
    }


def test_a_busy_replica_leads_to_another_and_that_to_a_node_in_one_reconfiguration() -> None:
    managed = Managed(region=Region("here", reserve_slots=1))
    managed.look()
    managed.look({"p.s": (0.2,)})
    managed.decisions.clear()
    assert managed.look({"p.s": (0.9,)}) == [AddReplica("p.s", "n1"), AddNode("here-1", "here", 1)]
    number = managed.state.last_reconfiguration
    levels = [(each.level, each.kind) for each in managed.decisions if each.reconfiguration == number]
    assert levels == [
        ("operator", "proposed"),
        ("application", "granted"),
        ("region", "proposed"),
        ("infrastructure", "granted"),
    ]
    managed.nodes["here-1"] = NodeSeen("here-1", "here", 1)
    managed.look({"p.s": (0.5, 0.5)})
    assert (managed.decisions[-1].reconfiguration, managed.decisions[-1].reason) == (
        number,
        "here-1 is up after 30 s",
    )


def test_where_no_slot_is_free_the_wish_waits_for_a_node_and_goes_on_as_the_same_reconfiguration() -> None:
    managed = Managed(nodes=1)
    managed.look()
    managed.look({"p.s": (0.2,)})
    assert managed.look({"p.s": (0.9,)}) == [AddNode("here-1", "here", 1)]
    number = managed.state.last_reconfiguration
    managed.nodes["here-1"] = NodeSeen("here-1", "here", 1)
    assert managed.look({"p.s": (0.9,)}) == [AddReplica("p.s", "here-1")]
    told = [(each.level, each.kind) for each in managed.decisions if each.reconfiguration == number]
    assert told == [
        ("operator", "proposed"),
        ("application", "asked"),
        ("region", "proposed"),
        ("infrastructure", "granted"),
        ("region", "seen"),
        ("operator", "proposed"),
        ("application", "granted"),
    ]
    assert managed.state.last_reconfiguration == number


def test_a_slot_that_is_asked_for_at_every_look_is_one_slot() -> None:
    managed = Managed(nodes=1)
    managed.look()
    assert managed.look({"p.s": (0.9,)}) == []
    assert managed.look({"p.s": (0.9,)}) == [AddNode("here-1", "here", 1)]
    asked = [each.reconfiguration for each in managed.decisions if each.kind == "asked"]
    assert len(asked) == 2
    assert len(set(asked)) == 1


def test_a_stage_is_judged_only_by_a_whole_period_with_its_replicas() -> None:
    managed = Managed(nodes=4, reserve=3)
    managed.look()
    added = [isinstance(change, AddReplica) for change in managed.look({"p.s": (0.9,)})]
    assert added == [True]
    waited = managed.look({"p.s": (0.9,)})  # the new one does not run yet
    assert not any(isinstance(change, AddReplica) for change in waited)
    assert any(isinstance(change, AddReplica) for change in managed.look({"p.s": (0.9, 0.9)}))


def test_a_stage_whose_change_took_long_is_judged_from_its_end_on() -> None:
    managed = Managed(nodes=4, reserve=3)
    managed.look()
    managed.look({"p.s": (0.9,)})
    # It ran on its two replicas only 20 s before this look: most of the period was without a turn.
    too_early = managed.look({"p.s": (0.1, 0.1)}, since=managed.now + 10.0)
    assert not any(isinstance(change, RemoveReplica) for change in too_early)
    # None goes within two periods: rows that waited meanwhile may still be on their way.
    still = managed.look({"p.s": (0.1, 0.1)}, since=managed.now - 20.0)
    assert not any(isinstance(change, RemoveReplica) for change in still)
    then = managed.look({"p.s": (0.1, 0.1)}, since=managed.now - 40.0)
    assert any(isinstance(change, RemoveReplica) for change in then)


def crowded(*stages: ManagedStage) -> Managed:
    """Two nodes of four slots each, one of which could go."""
    managed = Managed(*stages, slots=4)
    managed.look()
    return managed


def idle(managed: Managed) -> dict[str, tuple[float, ...]]:
    return {stage: (0.6,) * len(nodes) for stage, nodes in managed.state.ledger.places.items()}


def test_a_node_that_does_little_is_taken_from_view_consolidated_and_released() -> None:
    managed = crowded(S, ManagedStage("p.t"))
    assert managed.look(idle(managed)) == []
    assert managed.look(idle(managed)) == [HideNode("n0")]
    number = managed.state.last_reconfiguration
    assert managed.look(idle(managed)) == [Consolidate("n0", "p", (Move("p.s", 0, "n1"),))]
    assert managed.look(idle(managed)) == [ReleaseNode("n0")]
    del managed.nodes["n0"]
    managed.look(idle(managed))
    told = [(each.level, each.kind) for each in managed.decisions if each.reconfiguration == number]
    assert told == [
        ("region", "proposed"),
        ("infrastructure", "asked"),
        ("infrastructure", "granted"),
        ("application", "granted"),
        ("infrastructure", "granted"),
        ("region", "seen"),
    ]
    assert managed.told("granted")[-3] == "infrastructure: until it is given up or comes back"
    assert managed.decisions[-1].reason == "n0 is gone after 30 s"


def test_something_critical_keeps_its_node_and_the_node_is_left_alone_for_a_while() -> None:
    managed = crowded(replace(S, critical=True), ManagedStage("p.t", critical=True))
    hidden = [managed.look(idle(managed)) for _ in range(5)]
    assert hidden == [[], [HideNode("n0")], [], [ShowNode("n0")], []]
    assert managed.told("refused") == ["application: p.s runs there and is critical"]
    assert managed.told("cancelled") == ["infrastructure: refused by p: p.s runs there and is critical"]
    # The other node is tried next, and both are left alone for ten minutes after that.
    later = [change for _ in range(18) for change in managed.look(idle(managed))]
    assert (managed.now, later) == (690.0, [HideNode("n1"), ShowNode("n1")])
    assert managed.look(idle(managed)) == [HideNode("n0")]


def test_a_scale_in_that_is_not_done_in_time_is_cancelled_and_the_node_comes_back() -> None:
    managed = crowded(S, ManagedStage("p.t"))
    # The application managers look too rarely to answer.
    slow = replace(managed.elasticity.periods, application_seconds=100_000.0)
    managed.elasticity = replace(managed.elasticity, periods=slow)
    managed.state = ElasticState()
    managed.now = -30.0
    managed.look()
    changes = [change for _ in range(6) for change in managed.look(idle(managed))]
    assert changes == [HideNode("n0"), ShowNode("n0")]
    assert managed.told("cancelled") == ["infrastructure: not given up in 120 s"]
    assert managed.state.nodes["n0"].phase == "up"


def test_replicas_of_a_lost_node_are_placed_anew() -> None:
    managed = Managed(reserve=1)
    managed.look()
    del managed.nodes["n0"]
    assert managed.look({"p.s": (0.5,)}) == [Consolidate("", "p", (Move("p.s", 0, "n1"),))]
    assert managed.decisions[-3].reason == "n0 was lost with 1 replica"
    assert len({each.reconfiguration for each in managed.decisions[-3:]}) == 1


def test_where_no_other_node_is_left_one_is_asked_for() -> None:
    managed = Managed(nodes=1)
    managed.look()
    managed.nodes.clear()
    assert managed.look({"p.s": (0.5,)}) == []
    assert managed.look({"p.s": (0.5,)}) == [AddNode("here-1", "here", 1)]
    managed.nodes["here-1"] = NodeSeen("here-1", "here", 1)
    assert managed.look({"p.s": (0.5,)}) == [Consolidate("", "p", (Move("p.s", 0, "here-1"),))]


def test_a_node_that_never_comes_is_asked_for_again_by_another_name() -> None:
    managed = Managed(region=Region("here", reserve_slots=2), nodes=2)
    assert managed.look()[1:] == [AddNode("here-1", "here", 1)]
    changes = [change for _ in range(8) for change in managed.look({"p.s": (0.5,)})]
    assert changes == [AddNode("here-2", "here", 1)]
    assert "region: here-1 has not come in 180 s and is not counted on any more" in managed.told("seen")


def test_a_node_that_does_not_leave_is_told_to_go_again() -> None:
    managed = Managed()
    assert managed.look()[1:] == [ReleaseNode("n1")]
    stays = [(managed.now, change) for _ in range(9) for change in managed.look({"p.s": (0.5,)})]
    assert [change for _, change in stays] == [ReleaseNode("n1")]
    assert "region: n1 is still there after 150 s" in managed.told("seen")
    assert managed.state.nodes["n1"].phase == "leaving"


def test_a_node_that_drains_is_gone_when_it_is_and_not_before() -> None:
    managed = Managed()
    assert managed.look()[1:] == [ReleaseNode("n1")]
    managed.nodes["n1"] = replace(managed.nodes["n1"], leaving=True)
    managed.look({"p.s": (0.5,)})
    assert managed.state.nodes["n1"].phase == "leaving"
    assert not any("n1" in told for told in managed.told("seen") if "gone" in told)
    del managed.nodes["n1"]
    managed.look({"p.s": (0.5,)})
    assert "region: n1 is gone after 60 s" in managed.told("seen")


def test_a_stage_that_runs_on_other_slots_for_long_is_taken_as_it_is() -> None:
    managed = Managed(slots=8)
    managed.look()
    for _ in range(3):
        managed.look({"p.s": (0.5, 0.5, 0.5)})
    assert managed.state.ledger.replicas("p.s") == 3
    assert "operator: p.s runs on 3 slots, not on 1: taken as it is" in managed.told("seen")
    for _ in range(3):
        managed.look({"p.s": (0.6, 0.6)})
    assert managed.state.ledger.replicas("p.s") == 2


def test_a_node_with_fewer_slots_than_before_holds_no_more_than_it_has() -> None:
    managed = Managed(replace(S, replicas=3), slots=3, nodes=1)
    managed.look()
    managed.nodes["n0"] = NodeSeen("n0", "here", 1)
    managed.look()
    assert managed.state.ledger.places["p.s"] == ("n0", "", "")


def test_a_pipeline_that_is_gone_takes_no_slots_and_a_new_one_is_placed() -> None:
    managed = Managed()
    managed.look()
    fresh = ManagedPipeline("q", (ManagedStage("q.s"),))
    managed.elasticity = replace(managed.elasticity, pipelines=(fresh,))
    assert managed.look() == [AddReplica("q.s", "n0")]
    assert dict(managed.state.ledger.places) == {"q.s": ("n0",)}
    assert "application: p.s went: their slots are free" in managed.told("seen")


def test_two_pipelines_share_a_region_and_the_second_is_told_what_the_first_took() -> None:
    pipelines = tuple(ManagedPipeline(name, (ManagedStage(f"{name}.s"),)) for name in ("p", "q"))
    managed = Managed(nodes=3, reserve=1)
    managed.elasticity = replace(managed.elasticity, pipelines=pipelines)
    managed.look()
    busy = {"p.s": (0.9,), "q.s": (0.9,)}
    managed.look(busy)
    assert managed.told("refused") == ["application: n2 has no free slot"]


def test_each_region_grows_for_its_own_stages() -> None:
    stages = (ManagedStage("p.read", region="edge"), ManagedStage("p.sum", region="cloud", replicas=2))
    regions = (Region("edge", reserve_slots=1), Region("cloud", (NodeKind(4),), reserve_slots=2))
    elasticity = Elasticity((ManagedPipeline("p", stages),), regions)
    step = elasticity.step(ElasticState(), Observation(0.0, ()))
    added = [action.change for action in step.actions]
    assert added == [
        AddNode("edge-1", "edge", 1),
        AddNode("edge-2", "edge", 1),
        AddNode("cloud-1", "cloud", 4),
    ]
    nodes = (NodeSeen("edge-1", "edge", 1), NodeSeen("edge-2", "edge", 1), NodeSeen("cloud-1", "cloud", 4))
    step = elasticity.step(step.state, Observation(30.0, nodes))
    assert dict(step.state.ledger.places) == {"p.read": ("edge-1",), "p.sum": ("cloud-1", "cloud-1")}


def test_fewer_replicas_lead_to_fewer_nodes_in_the_same_reconfiguration() -> None:
    managed = Managed(replace(S, replicas=2), region=Region("here", reserve_slots=1), nodes=3)
    managed.look()
    managed.look({"p.s": (0.4, 0.4)})
    managed.decisions.clear()
    removed, released = managed.look({"p.s": (0.1, 0.1)})
    assert isinstance(removed, RemoveReplica)
    assert isinstance(released, ReleaseNode)
    assert len({each.reconfiguration for each in managed.decisions}) == 1


@pytest.mark.parametrize(
    ("pipelines", "regions", "message"),
    [
        ((), (), "there must be at least 1 region, got none: no replica could be placed"),
        (
            (),
            (Region("a"), Region("a")),
            "regions must have different names, got ['a', 'a']: which is meant is not clear",
        ),
        (
            (ManagedPipeline("p", (ManagedStage("p.s", region="moon"),)),),
            (Region("a"),),
            "stage 'p.s' must be in one of the regions a, got 'moon': no node would be started for it",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(
    pipelines: tuple[ManagedPipeline, ...], regions: tuple[Region, ...], message: str
) -> None:
    with pytest.raises(ElasticError) as refusal:
        Elasticity(pipelines, regions)
    assert str(refusal.value) == message
