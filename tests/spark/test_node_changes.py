"""What whoever watches is told of the managers' decisions: nodes that come and go, and why."""

from __future__ import annotations

from penstock.plan.elastic import AddNode, AddReplica, Decision, ReleaseNode
from penstock.spark.elastic import node_changes


def decision(kind: str, change: object, reason: str = "utilisation 0.91 over 0.70") -> Decision:
    return Decision(10.0, 1, "infrastructure", "all", kind, change, reason)  # type: ignore[arg-type]


def test_nodes_that_were_granted_are_told_with_their_reason() -> None:
    node = AddNode("n2", "here", 2)
    decisions = [
        decision("proposed", node),
        decision("granted", node),
        decision("granted", AddReplica("p.s", "n1")),
        decision("refused", ReleaseNode("n1")),
        decision("granted", ReleaseNode("n3"), "empty for 60 s"),
    ]
    assert node_changes(decisions) == [
        ("n2", "node n2 of 2 slots in here", "utilisation 0.91 over 0.70"),
        ("n3", "n3 decommissioned", "empty for 60 s"),
    ]
