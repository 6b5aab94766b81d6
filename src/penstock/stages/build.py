"""From a stage and the DataFrames at its inputs to the DataFrame at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.pipeline.nodes import Operator
from penstock.stages.stage import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OperatorError(PenstockError):
    """An operator's own function failed; `__cause__` is what it raised, if it raised."""

    def __init__(self, pipeline: str, operator: str, failure: str) -> None:
        subject = f"operator {operator!r} of pipeline {pipeline!r}"
        super().__init__(f"{subject} {failure}: the pipeline stops, its queues are kept")
        self.pipeline = pipeline
        self.operator = operator
        self.failure = failure

    def __reduce__(self) -> tuple[type[OperatorError], tuple[str, str, str]]:
        return type(self), (self.pipeline, self.operator, self.failure)


def build(stage: Stage, inputs: Mapping[str, DataFrame], *, before: str | None = None) -> DataFrame:
    """The stage's result for the DataFrames at its inputs, by name.

    With `before`, the name of an operator, what flows into that one instead (its first argument).
    An operator that is called at every turn is not applied: the result is what flows into it.
    """
    _check_inputs(stage, inputs)
    fed = {(feed.operator, feed.position): inputs[feed.input] for feed in stage.feeds}
    made: dict[str, DataFrame] = {}
    for operator in stage.operators:
        places = [((operator.name, at), name) for at, name in enumerate(operator.inputs)]
        given = [fed[place] if place in fed else made[name] for place, name in places]
        if operator.name == before or operator.turn_schema is not None:
            return given[0]
        made[operator.name] = _apply(stage.pipeline, operator, given)
    if before is not None:
        raise PenstockError(f"stage {stage.name!r} has no operator {before!r}, of {list(made)}")
    return made[stage.operators[-1].name] if stage.operators else inputs[stage.inputs[0]]


def _check_inputs(stage: Stage, inputs: Mapping[str, DataFrame]) -> None:
    if missing := [name for name in stage.inputs if name not in inputs]:
        raise PenstockError(
            f"stage {stage.name!r} must be given all its inputs, got none for {', '.join(map(repr, missing))}"
        )


def _apply(pipeline: str, operator: Operator, given: list[DataFrame]) -> DataFrame:
    try:
        made: DataFrame = operator.function(*given)
    except Exception as error:
        raise OperatorError(pipeline, operator.name, f"raised {type(error).__name__}: {error}") from error
    if not hasattr(made, "unionByName"):
        raise OperatorError(pipeline, operator.name, f"must return a DataFrame, got {type(made).__name__}")
    return made
