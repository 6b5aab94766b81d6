"""One replica more or less, by the paper's thresholds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from tests.plan.elastic.made import room

from penstock.plan.elastic import (
    AddReplica,
    ElasticError,
    Hold,
    ManagedStage,
    OnlyMeasure,
    OperatorView,
    RemoveReplica,
    Thresholds,
    Wish,
)

PAPER = Thresholds(out_share=0.7, in_factor=0.75)


def look(shares: tuple[float, ...], seed: int = 0, free: int = 2, most: int = 9) -> OperatorView:
    names = {f"n{number}": 1 for number in range(len(shares) + free)}
    seen = room(names, {"s": tuple(f"n{number}" for number in range(len(shares)))})
    return OperatorView(ManagedStage("s", most_replicas=most), "here", shares, seen, Random(seed))


def test_the_thresholds_are_those_of_the_paper() -> None:
    assert Thresholds() == PAPER


def test_any_replica_over_the_threshold_asks_for_another() -> None:
    wish = PAPER.propose(look((0.5, 0.71)))
    assert isinstance(wish, Wish)
    assert isinstance(wish.change, AddReplica)
    assert wish.change.node in ("n2", "n3")
    assert wish.reason == (
        f"replica 1 is busy 71% of the time, more than 70%; {wish.change.node} is the least used node"
    )


def test_a_replica_at_the_threshold_is_not_over_it() -> None:
    assert PAPER.propose(look((0.7, 0.7))) == Hold("2 replicas are neither too many nor too few")


def test_the_new_replica_goes_to_the_least_used_node_that_has_a_slot() -> None:
    busy = room({"a": 4, "b": 4, "c": 1, "d": 4}, {"s": ("a",), "other": ("c", "d")})
    uses = {"a": 0.5, "b": 0.2, "c": 0.0, "d": 0.1}
    nodes = {
        name: type(node)(**{**vars(node), "busy_share": uses[name]}) for name, node in busy.nodes.items()
    }
    seen = type(busy)(nodes, busy.ledger)
    wish = PAPER.propose(OperatorView(ManagedStage("s"), "here", (0.9,), seen, Random(0)))
    # c would be less used, but is full.
    assert isinstance(wish, Wish)
    assert wish.change == AddReplica("s", "d")


def test_where_no_node_has_a_slot_the_wish_names_none() -> None:
    wish = PAPER.propose(look((0.9,), free=0))
    assert wish == Wish(
        AddReplica("s", ""), "replica 0 is busy 90% of the time, more than 70%; no node of here has a slot"
    )


def test_stages_prefer_different_nodes_of_those_alike() -> None:
    seen = room({f"n{number}": 1 for number in range(10)}, dict.fromkeys("abcdef", ()))
    chosen = set()
    for name in "abcdef":
        wish = PAPER.propose(OperatorView(ManagedStage(name), "here", (0.9,), seen, Random(0)))
        assert isinstance(wish, Wish)
        chosen.add(wish.change)
    assert len({getattr(change, "node", "") for change in chosen}) > 2


@pytest.mark.parametrize(
    ("shares", "goes"),
    [((0.26, 0.26), True), ((0.27, 0.27), False), ((0.35, 0.35, 0.34), True), ((0.36, 0.36, 0.36), False)],
)
def test_one_goes_if_the_others_would_stay_well_below_the_threshold(
    shares: tuple[float, ...], goes: bool
) -> None:
    wish = PAPER.propose(look(shares))
    assert (isinstance(wish, Wish) and isinstance(wish.change, RemoveReplica)) == goes


def test_none_goes_while_rows_may_wait_at_a_stage_that_has_changed() -> None:
    idle = replace(look((0.1, 0.05)), calm=False)
    assert PAPER.propose(idle) == Hold(
        "1 replica would be busy 15% of the time, less than 52.5%, but a stage of its pipeline has just "
        "changed, or runs on a new node"
    )
    busy = PAPER.propose(replace(look((0.9, 0.8)), calm=False))
    assert isinstance(busy, Wish)
    assert isinstance(busy.change, AddReplica)


def test_rows_that_are_not_spread_evenly_bring_no_replicas_without_end() -> None:
    assert PAPER.propose(look((0.9, 0.05, 0.05))) == Hold(
        "replica 0 is busy 90% of the time, more than 70%, but 2 replicas would be busy 50% of the time, "
        "less than 52.5%: its rows are not spread evenly, which no replica helps"
    )


def test_the_one_that_goes_is_drawn_of_the_two_busiest() -> None:
    drawn: Counter[int] = Counter()
    for seed in range(200):
        wish = PAPER.propose(look((0.05, 0.3, 0.1, 0.2), seed))
        assert isinstance(wish, Wish)
        assert isinstance(wish.change, RemoveReplica)
        assert wish.change.node == f"n{wish.change.index}"
        drawn[wish.change.index] += 1
    assert set(drawn) == {1, 3}
    assert min(drawn.values()) > 60


def test_the_same_seed_draws_the_same_replica() -> None:
    assert PAPER.propose(look((0.2, 0.2, 0.2), 7)) == PAPER.propose(look((0.2, 0.2, 0.2), 7))


def test_the_last_replica_is_never_given_up() -> None:
    assert PAPER.propose(look((0.0,))) == Hold("1 replicas are neither too many nor too few")


def test_a_stage_with_its_most_replicas_asks_for_no_more() -> None:
    hold = PAPER.propose(look((0.9, 0.9), most=2))
    assert hold == Hold("replica 0 is busy 90% of the time, more than 70%, but s has its most replicas, 2")


def test_a_manager_that_only_measures_says_who_decides() -> None:
    assert OnlyMeasure().propose(look((1.0,))) == Hold("s is planned by its application manager")


@pytest.mark.parametrize(("out", "factor"), [(0.0, 0.5), (1.1, 0.5), (0.7, 1.0)])
def test_thresholds_that_never_rest_are_refused(out: float, factor: float) -> None:
    with pytest.raises(ElasticError, match="replicas would come and go for ever"):
        Thresholds(out, factor)
