"""Where managers that start anew go on from: what only the log knows, and nobody could see again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.plan.elastic.changes import AddNode, Decision, ShowNode
from penstock.plan.elastic.state import ElasticState


def going_on(log: Iterable[Mapping[str, Any]], retry_seconds: float) -> ElasticState:
    """Numbers and names go on, and nodes that came back are left alone; from the lines of a log.

    Nodes and replicas are taken as they are found: they may have changed since, and no node is out of view
    for a driver that has just started.
    """
    last, named, left_alone = 0, dict[str, int](), dict[str, float]()
    for line in log:
        state = line.get("state", {})
        last = max(last, state.get("last_reconfiguration", 0))
        named |= {region: max(many, named.get(region, 0)) for region, many in state.get("named", {}).items()}
        left_alone |= state.get("left_alone", {})
        for decision in map(Decision.from_json, line.get("decisions", ())):
            last = max(last, decision.reconfiguration)
            change = decision.change
            if isinstance(change, AddNode) and decision.kind == "granted":
                number = change.node.rpartition("-")[2]
                many = int(number) if number.isdigit() else 0
                named[change.region] = max(many, named.get(change.region, 0))
            elif isinstance(change, ShowNode):
                left_alone[change.node] = decision.at + retry_seconds
    return ElasticState(named=named, left_alone=left_alone, last_reconfiguration=last)
