"""What holds whatever comes: any load, any policies, nodes that are lost at any time."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.elastic.plant import Plant, PlantStage, Run

from penstock.plan.elastic import (
    AddReplica,
    ApplicationPolicy,
    CheapestNodes,
    Elasticity,
    GrantOrAsk,
    InfrastructurePolicy,
    ManagedPipeline,
    ManagedStage,
    NodeKind,
    NodeSeen,
    Periods,
    QueueingPlan,
    Record,
    RefuseTaken,
    Region,
    RemoveReplica,
    TokenBucket,
    replay,
)
from penstock.plan.elastic.nodes import NO_PLACE
from penstock.plan.elastic.stored_state import state_from_json, state_to_json

APPLICATIONS: tuple[ApplicationPolicy, ...] = (
    RefuseTaken(),
    TokenBucket(RefuseTaken(), per_minute=1.0),
    QueueingPlan(),
    TokenBucket(QueueingPlan(), per_minute=3.0),
)
INFRASTRUCTURES: tuple[InfrastructurePolicy, ...] = (
    GrantOrAsk(),
    TokenBucket(GrantOrAsk(), per_minute=2.0),
    CheapestNodes(),
)


def some_run(seed: int) -> Run:
    """Two pipelines in two regions, with everything else drawn."""
    chance = Random(seed)
    names = ("near", "far")
    regions = tuple(
        Region(
            name,
            tuple(NodeKind(slots, slots * chance.uniform(0.5, 1.0)) for slots in chance.sample((1, 2, 4), 2)),
            reserve_slots=chance.randint(0, 4),
            low_share=chance.choice((0.0, 0.1, 0.5)),
            most_nodes=chance.choice((4, 50)),
        )
        for name in names
    )
    pipelines, stages = [], {}
    for pipeline in ("p", "q"):
        managed = []
        for number in range(chance.randint(1, 3)):
            name = f"{pipeline}.s{number}"
            managed.append(
                ManagedStage(
                    name,
                    region=chance.choice(("", *names)),
                    elastic=chance.random() < 0.8,
                    critical=chance.random() < 0.2,
                    most_replicas=chance.choice((3, 20)),
                )
            )
            stages[name] = PlantStage(chance.uniform(0.001, 0.01))
        pipelines.append(
            ManagedPipeline(pipeline, tuple(managed), 3, chance.choice((0.01, 0.05, float("inf"))))
        )
    nodes = {f"old-{n}": NodeSeen(f"old-{n}", chance.choice(names), chance.randint(1, 4)) for n in range(3)}
    levels = [chance.uniform(0.0, 800.0) for _ in range(100)]
    periods = Periods(application_seconds=chance.choice((20.0, 30.0, 60.0)))
    elasticity = Elasticity(
        tuple(pipelines),
        regions,
        periods,
        applications=chance.choice(APPLICATIONS),
        infrastructure=chance.choice(INFRASTRUCTURES),
        seed=seed,
    )
    return Run(elasticity, Plant(lambda now: levels[int(now // 300)], stages, nodes, noise=0.1, seed=seed))


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_rules_hold_at_every_look(seed: int) -> None:
    run, chance = some_run(seed), Random(seed)
    for _ in range(150):
        run.look()
        check_rules(run)
        run.plant.advance(10)
        if run.plant.nodes and chance.random() < 0.03:
            del run.plant.nodes[chance.choice(sorted(run.plant.nodes))]
    check_log(run)


def check_rules(run: Run) -> None:
    state = run.state
    for node in state.nodes.values():
        assert state.ledger.used(node.name) <= node.slots
        waits = run.elasticity.periods.scale_in_seconds + run.elasticity.periods.infrastructure_seconds
        assert node.phase != "hidden" or run.plant.now - node.since <= waits
    for pipeline in run.elasticity.pipelines:
        for stage in pipeline.stages:
            places = state.ledger.places[stage.name]
            assert 1 <= len(places) <= stage.most_replicas
            assert {state.nodes[node].region for node in places if node != NO_PLACE} <= {
                state.homes[stage.name]
            }
    check_reserve(run)


def check_reserve(run: Run) -> None:
    """Kept or on its way after each look of the managers of nodes, as far as the region may grow."""
    settings_, state = run.elasticity, run.state
    looked = state.due["infrastructure"] == run.plant.now + settings_.periods.infrastructure_seconds
    if not looked or not isinstance(settings_.infrastructure, GrantOrAsk):
        return
    for region in settings_.regions:
        nodes = [node for node in state.nodes.values() if node.region == region.name]
        free = sum(
            node.slots - state.ledger.used(node.name) for node in nodes if node.phase in ("up", "starting")
        )
        full = sum(node.phase != "leaving" for node in nodes) >= region.most_nodes
        assert full or free >= region.reserve_slots


def check_log(run: Run) -> None:
    decisions = run.decisions
    proposed = Counter((each.reconfiguration, each.change) for each in decisions if each.kind == "proposed")
    waiting = Counter((each.reconfiguration, each.change) for each in run.state.waiting)
    judged = Counter(
        (each.reconfiguration, each.change)
        for each in decisions
        if each.kind in ("granted", "refused", "asked")
    )
    assert not proposed - waiting - judged
    assert all(each.reason for each in decisions)
    stored = [Record.from_json(json.loads(json.dumps(record.to_json()))) for record in run.log]
    assert stored == run.log
    assert replay(run.elasticity, stored) == decisions
    assert state_from_json(json.loads(json.dumps(state_to_json(run.state)))) == run.state


def steady(policies: str, load: float, noise: float, slots: int) -> Run:
    stage = ManagedStage("p.s")
    region = Region("here", (NodeKind(slots, slots),), reserve_slots=2)
    if policies == "paper":
        elasticity = Elasticity((ManagedPipeline("p", (stage,)),), (region,))
    else:
        elasticity = Elasticity.model_based((ManagedPipeline("p", (stage,)),), (region,))
    plant = Plant(lambda now: 100.0, {"p.s": PlantStage(load / 100.0)}, noise=noise)
    return Run(elasticity, plant)


@pytest.mark.parametrize("policies", ["paper", "model-based"])
@given(load=st.floats(0.01, 8.0), slots=st.integers(1, 4))
@settings(max_examples=10, deadline=None)
def test_a_steady_load_ends_in_steady_replicas_and_nodes(policies: str, load: float, slots: int) -> None:
    run = steady(policies, load, 0.03, slots).go(2 * 3600)
    changes = [action.change for action in run.actions]
    replicas = [each for each in changes if isinstance(each, AddReplica | RemoveReplica)]
    turns = [(type(one), type(next_)) for one, next_ in pairwise(replicas)]
    # More while rows that had piled up are worked off, then fewer, then none: never more again.
    assert (RemoveReplica, AddReplica) not in turns
    before = len(run.actions)
    run.go(1800)
    assert len(run.actions) == before
