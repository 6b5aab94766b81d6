"""A state as JSON and back: where a log that was cut, or a manager that starts anew, goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from penstock.plan.elastic.changes import Proposal, change_from_json, change_to_json
from penstock.plan.elastic.nodes import Ledger, Node
from penstock.plan.elastic.state import ElasticState, ScaleIn, SlotRequest


def state_to_json(state: ElasticState) -> dict[str, Any]:
    """A dict for `json.dumps`."""
    waiting = [{**vars(each), "change": change_to_json(each.change)} for each in state.waiting]
    return {**asdict(replace(state, waiting=())), "waiting": waiting}


def state_from_json(stored: Mapping[str, Any]) -> ElasticState:
    """The state that `state_to_json` was called on."""
    read: dict[str, Any] = {
        "nodes": {name: Node(**each) for name, each in stored["nodes"].items()},
        "ledger": Ledger({stage: tuple(nodes) for stage, nodes in stored["ledger"]["places"].items()}),
        "waiting": tuple(_proposal(each) for each in stored["waiting"]),
        "scale_ins": {name: _scale_in(each) for name, each in stored["scale_ins"].items()},
        "requests": tuple(SlotRequest(**each) for each in stored["requests"]),
        "memory": {
            manager: {name: tuple(values) for name, values in memory.items()}
            for manager, memory in stored["memory"].items()
        },
        **{name: {key: tuple(each) for key, each in stored[name].items()} for name in ("took", "gave")},
    }
    return ElasticState(**{**stored, **read})


def _proposal(stored: Mapping[str, Any]) -> Proposal:
    read = {"change": change_from_json(stored["change"]), "causes": tuple(stored["causes"])}
    return Proposal(**{**stored, **read})


def _scale_in(stored: Mapping[str, Any]) -> ScaleIn:
    return ScaleIn(**{**stored, "waiting": tuple(stored["waiting"])})
