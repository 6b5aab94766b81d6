"""What makes a checkpoint belong to one version of a pipeline, and how two versions differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from penstock.pipeline.nodes import Operator
from penstock.stages.stage import Stage, StageGraph

_WHOLE = ("pipeline", "version", "loops")


def describe(graph: StageGraph) -> dict[str, Any]:
    """The graph as JSON can hold it, with all that a checkpoint depends on.

    Latency targets and the settings of sources and sinks are left out, as they may change between runs.
    The functions cannot be compared: whoever changes one in a way that its state does not survive
    raises the pipeline's `version`.
    """
    stages = {stage.name: _described(stage) for stage in graph.stages}
    loops = {queue.name: queue.loop_schema for queue in graph.queues.values() if queue.loop_schema}
    described = {"pipeline": graph.pipeline, "version": graph.version, "loops": loops, "stages": stages}
    # Tuples become lists here, so that a description equals itself after it was stored.
    return json.loads(json.dumps(described))  # type: ignore[no-any-return]


def fingerprint(graph: StageGraph) -> str:
    """16 hexadecimal digits that are the same wherever `describe` is."""
    text = json.dumps(describe(graph), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed between two descriptions, one sentence each; empty where they are the same."""
    found = [_changed(key, old[key], new[key]) for key in _WHOLE if old[key] != new[key]]
    before, after = old["stages"], new["stages"]
    found += [f"stage {name!r} is gone" for name in before if name not in after]
    found += [f"stage {name!r} is new" for name in after if name not in before]
    for name in before:
        if name in after:
            found += [f"stage {name!r}: {each}" for each in _stage_differences(before[name], after[name])]
    return found


def _described(stage: Stage) -> dict[str, Any]:
    return {
        "inputs": [asdict(feed) for feed in stage.feeds],
        "native source": stage.native.name if stage.native else None,
        "operators": [_operator(operator) for operator in stage.operators],
        "output": stage.output,
        "sink": stage.sink.name if stage.sink else None,
        "parallelism": stage.parallelism,
    }


def _operator(operator: Operator) -> dict[str, Any]:
    settings = {"stateful": operator.stateful, "watermark": operator.watermark, **dict(operator.settings)}
    if operator.window is not None:
        settings.update(asdict(operator.window))
    return {"name": operator.name, "kind": operator.kind, "settings": settings}


def _stage_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    found = [
        _changed(key, _brief(key, old[key]), _brief(key, new[key]))
        for key in old
        if _brief(key, old[key]) != _brief(key, new[key])
    ]
    known = {operator["name"]: operator for operator in new["operators"]}
    for was in old["operators"]:
        if was["name"] in known:
            found += _operator_differences(was, known[was["name"]])
    return found


def _operator_differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    if was["kind"] != now["kind"]:
        return [f"operator {was['name']!r}: {_changed('kind', was['kind'], now['kind'])}"]
    before, after = was["settings"], now["settings"]
    return [
        f"operator {was['name']!r}: {_changed(key, before.get(key), after.get(key))}"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]


def _brief(key: str, value: Any) -> Any:
    """Operators by name in order, inputs by where they go: the rest is compared apart."""
    if key == "operators":
        return [operator["name"] for operator in value]
    if key == "inputs":
        return [_input(feed) for feed in value]
    return value


def _input(feed: Mapping[str, Any]) -> str:
    to = f"{feed['operator']}[{feed['position']}]" if feed["operator"] else "its end"
    return f"{feed['input']} to {to}" + (f" by loop {feed['loop']}" if feed["loop"] else "")


def _changed(what: str, old: Any, new: Any) -> str:
    return f"{what} was {old!r}, is {new!r}"
