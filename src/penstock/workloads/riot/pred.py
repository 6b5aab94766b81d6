"""PRED: predictive analytics. Classify each reading, predict its air quality, and say how far off."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.operators import riot
from penstock.pipeline import Pipeline, SinkSpec, SourceSpec, Stream

INSTANCES: Mapping[str, int] = {
    "senml_parse": 2,
    "decision_tree": 1,
    "linear_regression": 1,
    "block_average": 1,
    "error_estimate": 1,
    "publish": 3,
}
_CLASS = ("sensor", "airquality_raw", "class")
_ERROR = ("sensor", "airquality_raw", "prediction", "error")


def pred(
    source: SourceSpec,
    *,
    publish: SinkSpec,
    fused: bool = False,
    instances: Mapping[str, int] | None = None,
) -> Pipeline:
    """Two published rows for each line: its class, and the error of its prediction."""
    pipeline = Pipeline("pred", fuse=fused)
    lines = pipeline.source("lines", source)
    (_fused(lines) if fused else _unfused(lines, instances or {})).sink("mqtt", publish)
    return pipeline


def _unfused(lines: Stream, count: Mapping[str, int]) -> Stream:
    def k(name: str) -> int:
        return count.get(name, 1)

    parsed = lines.operator(
        "senml_parse", riot.senml_project(), dead_letters=True, parallelism=k("senml_parse")
    )
    classify = riot.in_turn(riot.decision_tree(), riot.as_payload(*_CLASS))
    classes = parsed.operator("decision_tree", classify, parallelism=k("decision_tree"))
    predicted = parsed.operator(
        "linear_regression", riot.linear_regression(), parallelism=k("linear_regression")
    )
    averages = parsed.operator(
        "block_average", riot.block_average(), stateful=True, parallelism=k("block_average")
    )
    errors = predicted.join(
        "error_estimate",
        averages,
        riot.in_turn(riot.error_estimate(), riot.as_payload(*_ERROR)),
        parallelism=k("error_estimate"),
    )
    return classes.union("publish", errors, parallelism=k("publish"))


def _fused(lines: Stream) -> Stream:
    """One pass over the rows of each sensor serves averages and errors; both results leave together."""
    errors = riot.in_turn(
        riot.linear_regression(),
        riot.block_average(every_row=True),
        riot.error_of_row(),
        riot.decision_tree(),
    )
    both = riot.in_turn(errors, riot.as_payloads(_CLASS, _ERROR))
    parsed = lines.operator("senml_parse", riot.senml_project(), dead_letters=True)
    return parsed.operator("predict", both, stateful=True)
