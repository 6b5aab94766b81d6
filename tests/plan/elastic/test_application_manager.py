"""Balanced starts, slots that are taken, and nodes that are given up or not."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.elastic.made import proposal, room, view

from penstock.plan.elastic import (
    AddReplica,
    Consolidate,
    ManagedStage,
    Move,
    Node,
    RefuseTaken,
    Region,
    RemoveReplica,
    Room,
    Verdict,
)
from penstock.plan.elastic.application_manager import first_places, give_up, home_of
from penstock.plan.elastic.rules import Rules

A, B = ManagedStage("p.a"), ManagedStage("p.b")


def test_a_slot_goes_to_the_first_who_asks_and_the_next_is_told_who_has_it() -> None:
    seen = view(room({"n": 1}), A, B)
    judged = RefuseTaken().judge(
        [proposal(AddReplica("p.a", "n")), proposal(AddReplica("p.b", "n"))], seen, {}
    )
    assert judged.verdicts == (
        Verdict("granted", "1 of 1 slot free there"),
        Verdict("refused", "n has no free slot: p.a has just got it"),
    )


def test_a_node_out_of_view_gets_nothing() -> None:
    away = room({"n": 4})
    hidden = Room({"n": replace(away.nodes["n"], phase="hidden")}, away.ledger)
    judged = RefuseTaken().judge([proposal(AddReplica("p.a", "n"))], view(hidden, A), {})
    assert judged.verdicts == (Verdict("refused", "n is not in view"),)


def test_without_a_slot_the_other_side_is_asked() -> None:
    judged = RefuseTaken().judge([proposal(AddReplica("p.a", ""))], view(room({}), A), {})
    assert judged.verdicts == (
        Verdict("asked", "no node has a free slot: the infrastructure manager is asked for one"),
    )


def test_the_last_replica_stays() -> None:
    seen = view(room({"n": 4}, {"p.a": ("n", "n")}), A)
    change = RemoveReplica("p.a", 0, "n")
    judged = RefuseTaken().judge([proposal(change, "p.a"), proposal(change, "p.a")], seen, {})
    assert judged.verdicts == (
        Verdict("granted", "1 of p.a stay"),
        Verdict("refused", "p.a would have no replica left"),
    )


def test_a_start_is_balanced_over_so_many_nodes_and_no_more() -> None:
    seen = view(room({f"n{number}": 4 for number in range(6)}), A, start_nodes=3)
    places = [node for _, node in first_places(seen, "here", ["p.a"] * 6)]
    assert sorted(places) == ["n0", "n0", "n1", "n1", "n2", "n2"]


def test_a_start_goes_on_to_other_nodes_and_then_waits() -> None:
    seen = view(room({"n0": 1, "n1": 1, "n2": 1}), A, start_nodes=2)
    assert [node for _, node in first_places(seen, "here", ["p.a"] * 4)] == ["n0", "n1", "n2", ""]


def test_replicas_of_a_node_to_be_given_up_go_where_least_room_is_left() -> None:
    seen = view(room({"n": 2, "full": 1, "half": 2, "free": 2}, {"p.a": ("n", "half", "full", "n")}), A)
    change, verdict = give_up(seen, "n")
    assert change == Consolidate("n", "p", (Move("p.a", 0, "half"), Move("p.a", 3, "free")))
    assert verdict == Verdict("granted", "2 moved to other nodes")


def test_a_node_that_runs_something_critical_is_not_given_up() -> None:
    critical = ManagedStage("p.a", critical=True)
    seen = view(room({"n": 2, "m": 2}, {"p.b": ("n",), "p.a": ("n",)}), critical, B)
    assert give_up(seen, "n")[1] == Verdict("refused", "p.a runs there and is critical")


def test_a_node_is_not_given_up_without_room_elsewhere() -> None:
    seen = view(room({"n": 2, "m": 1}, {"p.a": ("n", "n")}), A)
    assert give_up(seen, "n")[1] == Verdict("refused", "no other node of here has a slot for p.a")


def test_a_stage_runs_in_its_region_or_in_that_of_the_one_before_it_or_where_most_room_is() -> None:
    nodes = {name: Node(name, region, slots) for name, region, slots in [("e", "edge", 2), ("c", "cloud", 9)]}
    regions = Rules({name: Region(name) for name in ("edge", "cloud")})
    first, second, third = ManagedStage("p.1", region="edge"), ManagedStage("p.2"), ManagedStage("p.3")
    seen = replace(view(Room(nodes, room({}).ledger), first, second, third), homes={}, rules=regions)
    assert home_of(first, seen) == "edge"
    assert home_of(second, seen) == "cloud"
    seen = replace(seen, homes={"p.1": "edge"})
    assert home_of(second, seen) == "edge"
    assert home_of(replace(second, replicas=3), seen) == "cloud"
    assert home_of(third, replace(seen, homes={"p.1": "edge", "p.2": "cloud"})) == "cloud"
