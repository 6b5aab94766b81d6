"""A reconfiguration, told across the four managers."""

from __future__ import annotations

import pytest

from penstock.plan.elastic import AddNode, AddReplica, Decision, ElasticError, ReleaseNode, ShowNode
from penstock.plan.elastic.story import overview, story

MORE, NODE = AddReplica("wc.count", "edge-4"), AddNode("edge-5", "edge", 2)
LOG = (
    Decision(0.0, 1, "region", "edge", "seen", None, "edge-4 of 2 slots is there"),
    Decision(30.0, 2, "operator", "wc.count", "proposed", MORE, "replica 0 is busy 83% of the time"),
    Decision(30.0, 2, "application", "wc", "granted", MORE, "1 of 2 slots free there"),
    Decision(60.0, 2, "region", "edge", "proposed", NODE, "4 slots free in edge, 5 wanted", (3,)),
    Decision(60.0, 2, "infrastructure", "all", "granted", NODE, "edge has 4 nodes, at most 9", (3,)),
    Decision(66.0, 2, "region", "edge", "seen", None, "edge-5 is up after 6 s"),
    Decision(90.0, 3, "operator", "wc.split", "proposed", AddReplica("wc.split", "edge-4"), "too busy"),
    Decision(90.0, 3, "application", "wc", "refused", AddReplica("wc.split", "edge-4"), "no free slot"),
    Decision(120.0, 4, "infrastructure", "all", "asked", ReleaseNode("edge-2"), "wc asked to consolidate"),
    Decision(180.0, 4, "infrastructure", "all", "cancelled", ShowNode("edge-2"), "not given up in 120 s"),
)


def test_all_managers_that_had_to_do_with_it_are_told_in_order() -> None:
    assert story(LOG, 2).splitlines() == [
        "reconfiguration 2: +1 replica, +1 node",
        "00:00:30.000  operator manager of wc.count proposes a replica of wc.count on edge-4: "
        "replica 0 is busy 83% of the time",
        "00:00:30.000  application manager of wc grants a replica of wc.count on edge-4: "
        "1 of 2 slots free there",
        "00:01:00.000  region manager of edge proposes node edge-5 of 2 slots in edge: "
        "4 slots free in edge, 5 wanted [also of 3]",
        "00:01:00.000  infrastructure manager grants node edge-5 of 2 slots in edge: "
        "edge has 4 nodes, at most 9 [also of 3]",
        "00:01:06.000  region manager of edge sees: edge-5 is up after 6 s",
    ]


def test_what_it_was_a_cause_of_is_told_too() -> None:
    lines = story(LOG, 3).splitlines()
    assert [line.partition("  ")[2].split(" manager")[0] for line in lines[1:]] == [
        "region",
        "infrastructure",
        "operator",
        "application",
    ]


def test_the_overview_has_a_line_for_each_with_its_outcome() -> None:
    assert overview(LOG, 5) == [
        "00:00:30.000  reconfiguration 2: +1 replica, +1 node",
        "00:01:30.000  reconfiguration 3: refused: no free slot",
        "00:02:00.000  reconfiguration 4: cancelled, not given up in 120 s",
    ]
    assert overview(LOG, 1) == ["00:02:00.000  reconfiguration 4: cancelled, not given up in 120 s"]


def test_one_that_is_not_kept_is_refused() -> None:
    with pytest.raises(ElasticError, match="no reconfiguration 9 is kept, of: from 1 to 4"):
        story(LOG, 9)
    with pytest.raises(ElasticError, match="no reconfiguration 9 is kept, of: none"):
        story((), 9)
