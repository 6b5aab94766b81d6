"""The reserve, by the smallest nodes; and what goes when there is more than that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.plan.elastic.made import room

from penstock.plan.elastic import (
    AddNode,
    KeepReserve,
    NodeKind,
    Region,
    RegionView,
    ReleaseNode,
    Room,
    Wish,
)

PAPER = Region("here", reserve_slots=5, low_share=0.1)
FRESH = tuple(f"here-{number}" for number in range(20, 40))


def wishes(seen: Room, region: Region = PAPER, homeless: int = 0) -> tuple[Wish, ...]:
    return KeepReserve().propose(RegionView(region, seen, homeless, FRESH))


def used(seen: Room, shares: Mapping[str, float]) -> Room:
    nodes = {name: replace(node, busy_share=shares.get(name, 0.0)) for name, node in seen.nodes.items()}
    return Room(nodes, seen.ledger)


def test_the_defaults_are_those_of_the_paper() -> None:
    assert (Region("here").reserve_slots, Region("here").low_share) == (5, 0.1)


def test_what_the_reserve_is_short_of_comes_in_nodes_of_the_smallest_kind() -> None:
    region = replace(PAPER, kinds=(NodeKind(8, 4.0), NodeKind(2, 3.0), NodeKind(2, 2.0)))
    seen = room({"a": 2, "b": 2}, {"s": ("a", "b")})
    reason = "2 slots free in here, 5 wanted"
    assert wishes(seen, region) == (
        Wish(AddNode("here-20", "here", 2, 2.0), reason),
        Wish(AddNode("here-21", "here", 2, 2.0), reason),
    )


def test_nodes_that_start_are_counted_and_nodes_out_of_view_are_not() -> None:
    seen = room({"a": 4, "b": 4, "c": 4})
    phases = {"a": replace(seen.nodes["a"], phase="starting"), "b": replace(seen.nodes["b"], phase="hidden")}
    seen = Room({**seen.nodes, **phases, "c": replace(seen.nodes["c"], phase="leaving")}, seen.ledger)
    assert [wish.reason for wish in wishes(seen)] == ["4 slots free in here, 5 wanted"]


def test_replicas_without_a_node_are_as_good_as_placed() -> None:
    asked = wishes(room({f"n{number}": 1 for number in range(5)}), homeless=2)
    assert [wish.change for wish in asked] == [AddNode("here-20", "here", 1), AddNode("here-21", "here", 1)]
    assert asked[0].reason == "3 slots free in here, 5 wanted (2 replicas have no node)"


def test_just_the_reserve_is_neither_too_much_nor_too_little() -> None:
    assert wishes(room({f"n{number}": 1 for number in range(5)})) == ()


def test_of_a_surplus_empty_nodes_go_first_the_largest_that_can_be_spared() -> None:
    seen = room({"a": 1, "b": 4, "c": 2, "d": 1, "e": 4}, {"s": ("e", "d")})
    # 10 are free: b goes (6), c would leave 4, a goes (5).
    assert wishes(seen) == (
        Wish(ReleaseNode("b"), "it is empty; 6 slots stay free in here, 5 wanted"),
        Wish(ReleaseNode("a"), "it is empty; 5 slots stay free in here, 5 wanted"),
    )


def test_then_nodes_that_do_little_go_the_least_used_first() -> None:
    places = {"s": ("a", "b", "c", "d")}
    seen = used(room(dict.fromkeys("abcd", 4), places), {"a": 0.1, "b": 0.05, "c": 0.11, "d": 0.02})
    # 12 are free: one can be spared, and 4 more would break the reserve.
    asked = wishes(seen)
    assert [wish.change for wish in asked] == [ReleaseNode("d")]
    assert asked[0].reason == (
        "d is busy 2% of the time with 1 replicas; 8 slots stay free in here, 5 wanted"
    )


def test_a_node_over_the_low_share_stays() -> None:
    seen = used(room({"a": 9, "b": 9}, {"s": ("a", "b")}), {"a": 0.11, "b": 0.11})
    assert wishes(seen) == ()
    seen = used(seen, {"a": 0.11, "b": 0.1})
    assert [wish.change for wish in wishes(seen)] == [ReleaseNode("b")]
    unmeasured = RegionView(PAPER, seen, 0, FRESH, unmeasured=frozenset({"b"}))
    assert KeepReserve().propose(unmeasured) == ()


def test_a_node_whose_scale_in_was_cancelled_is_left_alone() -> None:
    seen = room({f"n{number}": 1 for number in range(6)})
    view = RegionView(PAPER, seen, 0, FRESH, frozenset({"n0"}))
    assert [wish.change for wish in KeepReserve().propose(view)] == [ReleaseNode("n1")]
