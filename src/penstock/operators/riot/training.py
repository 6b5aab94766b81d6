"""TRAIN's two trainings, with Spark MLlib: all requests that wait together are answered by one model.

Each is for `stream.each_turn(name, ..., schema=ANSWERS)`: a turn has the requests that waited for it, each
with its array of rows. One model is fitted to the rows of all of them, and every request gets it. RIoTBench
fits one for each request; a fit costs Spark jobs, whose fixed cost the requests of a turn thus share, and a
row that several of them hold counts that often.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.riot.training_rows import CLASSES
from penstock.operators.transform import Transform
from penstock.spark.jvm import frame_of, jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ANSWERS = "msgid BIGINT, arrived TIMESTAMP, payload STRING"
FEATURES = ("temperature", "humidity", "dust")


def regression_training(
    features: Sequence[str] = FEATURES,
    label: str = "airquality_raw",
    *,
    rows: str = "rows",
    regularisation: float = 0.0,
) -> Transform:
    """LinearRegressionTrain: `payload` is the model as JSON, {"model": {"coefficients", "intercept"},
    "rows", "requests"}.

    Solved by normal equations: one pass over the rows. Rows with a null are left out; with none left, the
    model is null.
    """

    def fit(turn: Any) -> dict[str, Any]:
        *coefficients, intercept = json.loads(turn.regression(float(regularisation)))
        return {"coefficients": dict(zip(features, coefficients, strict=True)), "intercept": intercept}

    return _answering(fit, rows, (*features, label))


def tree_training(
    features: Sequence[str] = FEATURES,
    label: str = "class",
    *,
    rows: str = "rows",
    classes: Sequence[str] = CLASSES,
    max_depth: int = 3,
    max_bins: int = 32,
) -> Transform:
    """DecisionTreeTrain: `payload` has the tree as nested JSON, {"feature", "at_most", "yes", "no"} down to
    {"class"}.

    Rows with a null, or of a class that is not in `classes`, are left out; with none left, the model is null.
    """

    def fit(turn: Any) -> dict[str, Any]:
        return _named(json.loads(turn.tree(max_depth, max_bins)), features, classes)

    return _answering(fit, rows, (*features, label), classes)


def _answering(
    fit: Callable[[Any], dict[str, Any]], rows: str, names: Sequence[str], classes: Sequence[str] = ()
) -> Transform:
    """`fit` gets a TrainingTurn of the JVM."""

    def train(requests: DataFrame) -> DataFrame:
        session = requests.sparkSession
        turn = jvm(session).penstock.TrainingTurn(requests._jdf, rows, list(names), list(classes))
        examples = turn.rows()
        said = {"model": fit(turn) if examples else None, "rows": examples, "requests": turn.requests()}
        return frame_of(turn.answers(json.dumps(said)), session)

    return train


def _named(node: dict[str, Any], features: Sequence[str], classes: Sequence[str]) -> dict[str, Any]:
    """A tree with the names of its features and classes instead of their numbers."""
    if "class" in node:
        return {"class": classes[node["class"]]}
    return {
        "feature": features[node["feature"]],
        "at_most": node["at_most"],
        "yes": _named(node["yes"], features, classes),
        "no": _named(node["no"], features, classes),
    }
