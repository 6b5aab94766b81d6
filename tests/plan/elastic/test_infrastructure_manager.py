"""Which nodes come and go: the paper's policy, the token bucket, and the cheapest set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.plan.elastic.made import proposal, room

from penstock.plan.elastic import (
    AddNode,
    CheapestNodes,
    ElasticError,
    GrantOrAsk,
    InfrastructureView,
    NodeKind,
    Region,
    ReleaseNode,
    Room,
    TokenBucket,
    Verdict,
)
from penstock.plan.elastic.rules import Rules


def view(
    seen: Room, region: Region | None = None, needs: Mapping[str, int] | None = None
) -> InfrastructureView:
    rules = Rules({"here": region or Region("here")})
    fresh = {"here": tuple(f"here-{number}" for number in range(20, 40))}
    return InfrastructureView(seen, rules, 0.0, needs or {}, {"s": "p", "t": "q"}, fresh_names=fresh)


def test_nodes_are_added_up_to_the_most_of_a_region() -> None:
    asked = [proposal(AddNode(name, "here", 1)) for name in ("x", "y")]
    judged = GrantOrAsk().judge(asked, view(room({"n": 1}), Region("here", most_nodes=2)), {})
    assert judged.verdicts == (
        Verdict("granted", "here has 1 nodes, at most 2"),
        Verdict("refused", "region here may have at most 2 nodes"),
    )


def test_an_empty_node_goes_and_the_users_of_another_are_asked() -> None:
    seen = room({"n": 2, "m": 2}, {"s": ("m",), "t": ("m",)})
    judged = GrantOrAsk().judge([proposal(ReleaseNode(name)) for name in ("n", "m", "n")], view(seen), {})
    assert judged.verdicts == (
        Verdict("granted", "nothing is on it"),
        Verdict("asked", "2 replicas count on it: p, q asked to consolidate"),
        Verdict("refused", "n is leaving already"),
    )


def test_a_token_bucket_lets_through_so_many_and_fills_with_time() -> None:
    bucket = TokenBucket[InfrastructureView](GrantOrAsk(), per_minute=2.0, most=2.0)
    seen = room(dict.fromkeys("abcd", 1))
    asked = [proposal(ReleaseNode(name)) for name in "abcd"]
    judged = bucket.judge(asked, view(seen), {})
    assert [verdict.kind for verdict in judged.verdicts] == ["granted", "granted", "refused", "refused"]
    assert judged.verdicts[2].reason == "2 reconfigurations a minute are used up, the next in 30 s"
    later = replace(view(seen), now=45.0)
    judged = bucket.judge(asked, later, judged.memory)
    assert [verdict.kind for verdict in judged.verdicts] == ["granted", "refused", "refused", "refused"]
    assert judged.verdicts[1].reason == "2 reconfigurations a minute are used up, the next in 15 s"


def test_what_the_policy_refuses_takes_no_token() -> None:
    bucket = TokenBucket[InfrastructureView](GrantOrAsk(), per_minute=1.0, most=1.0)
    asked = [proposal(ReleaseNode(name)) for name in ("gone", "n")]
    judged = bucket.judge(asked, view(room({"n": 1})), {})
    assert judged.verdicts == (
        Verdict("refused", "gone is gone already"),
        Verdict("granted", "nothing is on it"),
    )


def test_a_token_bucket_limits_what_a_manager_wants_itself_too() -> None:
    bucket = TokenBucket[InfrastructureView](CheapestNodes(), per_minute=1.0, most=2.0)
    judged = bucket.judge([], view(room({}), Region("here", reserve_slots=0), {"here": 3}), {})
    assert [own.verdict.kind for own in judged.own] == ["granted", "granted", "refused"]


def test_a_bucket_that_never_fills_is_refused() -> None:
    with pytest.raises(ElasticError, match="nothing would ever be granted"):
        TokenBucket[InfrastructureView](GrantOrAsk(), per_minute=0.0)


CHEAP = Region("here", (NodeKind(1, 1.0), NodeKind(4, 3.0)), reserve_slots=1)
DEAR = replace(CHEAP, kinds=(NodeKind(4, 4.0),))


def test_the_cheapest_nodes_for_the_plan_are_added() -> None:
    judged = CheapestNodes().judge([], view(room({}), CHEAP, {"here": 5}), {})
    assert [own.wish.change for own in judged.own] == [
        AddNode("here-20", "here", 1, 1.0),
        AddNode("here-21", "here", 1, 1.0),
        AddNode("here-22", "here", 4, 3.0),
    ]
    assert judged.own[0].wish.reason == "it is one of the cheapest nodes that carry 6 slots in here"


def test_a_proposal_against_the_cheapest_set_is_refused_and_one_for_it_granted() -> None:
    asked = [proposal(AddNode("x", "here", 1, 1.0)), proposal(AddNode("y", "here", 4, 3.0))]
    judged = CheapestNodes().judge(asked, view(room({}), CHEAP, {"here": 3}), {})
    assert judged.verdicts == (
        Verdict("refused", "the cheapest nodes that carry 4 slots in here need no more of 1 slots"),
        Verdict("granted", "it follows the plan"),
    )
    assert judged.own == ()


def test_nodes_that_are_not_of_the_cheapest_set_go_empty_ones_first() -> None:
    seen = room({"a": 1, "b": 1, "c": 1, "d": 1}, {"s": ("b", "d")})
    judged = CheapestNodes().judge([], view(seen, CHEAP, {"here": 2}), {})
    assert [own.wish.change for own in judged.own] == [ReleaseNode("c")]
    kept = CheapestNodes().judge([proposal(ReleaseNode("b"))], view(seen, CHEAP, {"here": 2}), {})
    assert kept.verdicts == (
        Verdict("refused", "it is one of the cheapest nodes that carry 3 slots in here"),
    )


def test_replicas_are_asked_to_leave_where_fewer_nodes_carry_them() -> None:
    seen = room({"a": 4, "b": 4}, {"s": ("a", "a"), "t": ("b",)})
    judged = CheapestNodes().judge([], view(seen, DEAR, {"here": 3}), {})
    assert [(own.wish.change, own.verdict.kind) for own in judged.own] == [(ReleaseNode("b"), "asked")]


def test_a_node_with_something_critical_stays_and_another_goes() -> None:
    seen = room({"a": 4, "b": 4}, {"s": ("a", "a"), "t": ("b",)})
    held = replace(view(seen, DEAR, {"here": 3}), critical=frozenset({"b"}))
    judged = CheapestNodes().judge([], held, {})
    assert [own.wish.change for own in judged.own] == [ReleaseNode("a")]


def test_nodes_are_kept_through_a_dip() -> None:
    policy, seen = CheapestNodes(calm_seconds=60.0), room({"a": 1, "b": 1, "c": 1})
    judged = policy.judge([], view(seen, CHEAP, {"here": 2}), {})
    assert judged.own == ()
    dip = replace(view(seen, CHEAP, {"here": 0}), now=30.0)
    judged = policy.judge([], dip, judged.memory)
    assert judged.own == ()
    judged = policy.judge([], replace(dip, now=61.0), judged.memory)
    assert [own.wish.change for own in judged.own] == [ReleaseNode("b"), ReleaseNode("c")]


def test_a_node_is_not_exchanged_for_one_that_is_hardly_cheaper() -> None:
    seen = room({"a": 4})
    cheaper = replace(CHEAP, kinds=(NodeKind(4, 3.9),))
    assert CheapestNodes().judge([], view(seen, cheaper, {"here": 3}), {}).own == ()
    half = replace(CHEAP, kinds=(NodeKind(4, 2.0),))
    own = CheapestNodes().judge([], view(seen, half, {"here": 3}), {}).own
    assert [each.wish.change for each in own] == [AddNode("here-20", "here", 4, 2.0), ReleaseNode("a")]


def test_a_node_in_use_is_exchanged_once_the_new_one_is_there() -> None:
    half, seen = replace(CHEAP, kinds=(NodeKind(4, 2.0),)), room({"a": 4}, {"s": ("a", "a")})
    own = CheapestNodes().judge([], view(seen, half, {"here": 2}), {}).own
    assert [each.wish.change for each in own] == [AddNode("here-20", "here", 4, 2.0)]
    fresh = replace(seen.nodes["a"], name="here-20", price=2.0)
    both = Room({**seen.nodes, "here-20": fresh}, seen.ledger)
    own = CheapestNodes().judge([], view(both, half, {"here": 2}), {}).own
    assert [(each.wish.change, each.verdict.kind) for each in own] == [(ReleaseNode("a"), "asked")]
