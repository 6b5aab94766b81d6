"""Replicas by the queueing plan of a pipeline."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.elastic.made import proposal, room, view

from penstock.model import MMk, Network, NetworkStage
from penstock.plan.elastic import (
    AddReplica,
    ApplicationView,
    ManagedStage,
    QueueingPlan,
    RemoveReplica,
    StageSeen,
    Verdict,
)
from penstock.plan.elastic.global_policy import Memory
from penstock.plan.slots import min_processors

A, B = ManagedStage("p.a"), ManagedStage("p.b")
POLICY = QueueingPlan(calm_seconds=60.0, headroom=0.0)
TARGET = 0.05


def look(
    have: tuple[int, int], rates: tuple[float, float], now: float = 0.0, nodes: int = 20
) -> ApplicationView:
    places = {
        "p.a": tuple(f"n{n}" for n in range(have[0])),
        "p.b": tuple(f"n{10 + n}" for n in range(have[1])),
    }
    seen = view(room({f"n{n}": 1 for n in range(nodes)}, places), A, B, target_seconds=TARGET)
    stages = {
        "p.a": StageSeen((0.5,) * have[0], rates[0], 0.02),
        "p.b": StageSeen((0.5,) * have[1], rates[1], 0.01),
    }
    return replace(seen, seen=stages, now=now)


def fewest(rate_a: float, rate_b: float) -> dict[str, int]:
    stages = (NetworkStage("p.a", MMk(rate_a, 50.0)), NetworkStage("p.b", MMk(rate_b, 100.0)))
    return dict(min_processors(Network(stages), TARGET).slots)


def test_all_replicas_that_the_plan_has_are_added_at_one_look() -> None:
    wanted = fewest(150.0, 300.0)
    judged = POLICY.judge([], look((1, 1), (150.0, 300.0)), {})
    added = [own.wish.change for own in judged.own]
    assert sum(isinstance(each, AddReplica) and each.stage == "p.a" for each in added) == wanted["p.a"] - 1
    assert sum(isinstance(each, AddReplica) and each.stage == "p.b" for each in added) == wanted["p.b"] - 1
    assert {own.verdict.kind for own in judged.own} == {"granted"}
    assert judged.needs == {"here": sum(wanted.values())}


def test_what_meets_the_target_stays() -> None:
    wanted = fewest(150.0, 300.0)
    have = (wanted["p.a"], wanted["p.b"])
    assert POLICY.judge([], look(have, (150.0, 300.0)), {}).own == ()


def test_proposals_are_judged_by_the_plan() -> None:
    wanted = fewest(150.0, 300.0)
    have = (wanted["p.a"] - 1, wanted["p.b"])
    more_a, more_b = proposal(AddReplica("p.a", "n9")), proposal(AddReplica("p.b", "n9"))
    judged = POLICY.judge([more_b, more_a], look(have, (150.0, 300.0)), {})
    assert [verdict.kind for verdict in judged.verdicts] == ["refused", "granted"]
    told = f"the plan has {wanted['p.b']} replicas of p.b, E[T] "
    assert judged.verdicts[0].reason.startswith(told)
    assert judged.own == ()


def test_fewer_come_when_they_would_have_done_for_a_while() -> None:
    memory: Memory = {}
    for now in (0.0, 30.0, 60.0):
        judged = POLICY.judge([], look((6, 6), (40.0, 80.0), now), memory)
        memory = judged.memory
        assert bool(judged.own) == (now == 60.0)
    assert {type(own.wish.change) for own in judged.own} == {RemoveReplica}


def test_fewer_come_though_nobody_looks_to_the_microsecond() -> None:
    memory: Memory = {}
    removed = []
    for number, jitter in enumerate(
        (0.0, 0.021, 0.013, 0.044, 0.002, 0.038, 0.009, 0.027, 0.016, 0.03, 0.05)
    ):
        judged = POLICY.judge([], look((6, 6), (40.0, 80.0), 7.5 * number + jitter), memory)
        memory = judged.memory
        removed.append(bool(judged.own))
    # A whole minute of calm, and from then on at every look.
    assert removed == [False] * 8 + [True] * 3


def test_growth_is_planned_for_ahead() -> None:
    policy = replace(POLICY, ahead_seconds=60.0, nodes_ahead_seconds=600.0)
    first = policy.judge([], look((4, 4), (50.0, 100.0), 0.0), {})
    # 1 row/s more every second, of which half is believed at once.
    then = policy.judge([], look((4, 4), (80.0, 160.0), 30.0), first.memory)
    soon, later = fewest(80.0 + 30.0, 160.0 + 60.0), fewest(80.0 + 300.0, 160.0 + 600.0)
    have = {"p.a": 4, "p.b": 4}
    assert sum(soon.values()) <= sum(have.values())
    assert then.own == ()
    assert then.needs == {"here": sum(max(have[name], later[name]) for name in have)}
    assert then.needs["here"] > 8


def test_rows_that_come_in_a_lump_at_one_stage_are_no_growth() -> None:
    stages = (*(ManagedStage(f"p.{name}") for name in "abc"),)
    places = {stage.name: ("n0",) for stage in stages}
    memory: Memory = {}
    # The second stood still for a while, and what waited there then came to the third at once.
    for now, rates in ((0.0, (20.0, 20.0, 20.0)), (30.0, (20.0, 20.0, 40.0))):
        seen = view(room({f"n{n}": 9 for n in range(9)}, places), *stages, target_seconds=TARGET)
        known = {stage.name: StageSeen((0.5,), rate, 0.01) for stage, rate in zip(stages, rates, strict=True)}
        judged = POLICY.judge([], replace(seen, seen=known, now=now), memory)
        memory = judged.memory
    assert judged.own == ()
    assert judged.needs == {"here": 3}


def test_a_stage_fed_in_segments_is_planned_as_such() -> None:
    seen = StageSeen((0.5, 0.5), 100.0, row_seconds=0.01, fixed_seconds=0.1, segment_seconds=1.0)
    # 100 rows every second on k slots: c0 and the second's rows, of which none waits for a turn before it.
    assert [round(seen.model(100.0).sojourn_seconds(k), 3) for k in (2, 4)] == [0.6, 0.35]
    # Singly they would wait for the turn that runs, which is short.
    single = replace(seen, segment_seconds=0.0)
    assert single.model(100.0).sojourn_seconds(2) < 0.4


def test_where_nodes_are_full_the_other_side_is_asked() -> None:
    judged = POLICY.judge([], look((1, 1), (150.0, 300.0), nodes=0), {})
    assert {own.verdict for own in judged.own} == {
        Verdict("asked", "no node has a free slot: the infrastructure manager is asked for one")
    }


def test_a_target_out_of_reach_is_planned_for_by_utilisation() -> None:
    seen = look((1, 1), (150.0, 300.0))
    seen = replace(seen, pipeline=replace(seen.pipeline, target_seconds=0.001))
    added = [own.wish.change for own in POLICY.judge([], seen, {}).own]
    # 3 busy slots at each, at most 85% of the time: 4 of each.
    assert len(added) == 6


def test_a_target_out_of_reach_keeps_no_replicas_that_are_too_many() -> None:
    memory: Memory = {}
    for now in (0.0, 30.0, 60.0):
        seen = look((9, 9), (150.0, 300.0), now)
        seen = replace(seen, pipeline=replace(seen.pipeline, target_seconds=0.001))
        judged = POLICY.judge([], seen, memory)
        memory = judged.memory
    # 3.3 busy slots at each with the margin, at most 85% of the time: 4 of each.
    assert [type(own.wish.change) for own in judged.own] == [RemoveReplica] * 10


def test_a_target_just_above_the_work_alone_wants_no_replicas_that_are_hardly_used() -> None:
    seen = look((1, 1), (150.0, 300.0))
    known = {name: replace(each, fixed_seconds=0.1) for name, each in seen.seen.items()}
    floor = sum(each.model(each.rows_per_second).floor_seconds for each in known.values())
    above = replace(seen.pipeline, target_seconds=1.001 * floor)
    judged = POLICY.judge([], replace(seen, seen=known, pipeline=above), {})
    # 3 busy slots at each, at least 20% of the time: 15 of each.
    assert judged.needs == {"here": 30}


def test_stages_of_which_nothing_is_known_are_waited_for() -> None:
    seen = replace(look((1, 1), (150.0, 300.0)), seen={})
    judged = POLICY.judge([proposal(AddReplica("p.a", "n5"))], seen, {})
    assert judged.verdicts == (Verdict("refused", "no plan: nothing is known of p.a yet"),)
    assert judged.own == ()
