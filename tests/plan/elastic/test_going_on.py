"""Managers that start anew go on where the log ends."""

from __future__ import annotations

import json

from penstock.plan.elastic import (
    AddNode,
    Decision,
    ElasticState,
    Observation,
    Record,
    ReleaseNode,
    ShowNode,
    going_on,
)


def test_numbers_names_and_nodes_to_leave_alone_are_those_of_the_log() -> None:
    before = ElasticState(named={"edge": 4, "far": 2}, left_alone={"edge-1": 50.0}, last_reconfiguration=6)
    decisions = (
        Decision(20.0, 7, "infrastructure", "all", "granted", AddNode("edge-5", "edge", 1), "why"),
        Decision(20.0, 8, "infrastructure", "all", "refused", AddNode("edge-9", "edge", 1), "why"),
        Decision(30.0, 5, "infrastructure", "all", "cancelled", ShowNode("edge-2"), "why"),
        Decision(30.0, 8, "infrastructure", "all", "granted", ReleaseNode("edge-3"), "why"),
    )
    log = [Record(Observation(10.0, ()), (), before), Record(Observation(20.0, ()), decisions)]
    lines = [json.loads(json.dumps(each.to_json())) for each in log]
    assert going_on(lines, retry_seconds=600.0) == ElasticState(
        named={"edge": 5, "far": 2}, left_alone={"edge-1": 50.0, "edge-2": 630.0}, last_reconfiguration=8
    )


def test_without_a_log_they_begin_at_the_beginning() -> None:
    assert going_on([], 600.0) == ElasticState()
