"""TRAIN's two trainings, with Spark MLlib: every request is answered by a model of the rows that it asks for.

Each is for `stream.each_turn(name, ..., schema=ANSWERS)`: a turn has the requests that waited for it, each
with its array of rows. As in RIoTBench, a model knows nothing of the other requests of its turn; all of them
are fitted where the turn's rows are, without a job. With `shared=True` one model is fitted to the rows of all
requests that wait together, and every one of them gets it: fewer fits, but an answer that depends on who else
asked. A row that several of them hold then counts that often.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.riot.rows import CARRIED
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
    shared: bool = False,
    carry: Sequence[str] = CARRIED,
) -> Transform:
    """LinearRegressionTrain: `payload` is JSON, {"model": {"coefficients", "intercept"}, "rows"}.

    Solved by normal equations: one pass over the rows. Rows with a null are left out; with none left, the
    model is null. A shared one says of how many "requests" it is.
    """

    def train(requests: DataFrame) -> DataFrame:
        turn = _turn(requests, rows, (*features, label))
        said = turn.regressions(_quoted(features), float(regularisation), shared, list(carry))
        return frame_of(said, requests.sparkSession)

    return train


def tree_training(
    features: Sequence[str] = FEATURES,
    label: str = "class",
    *,
    rows: str = "rows",
    classes: Sequence[str] = CLASSES,
    max_depth: int = 3,
    max_bins: int = 32,
    shared: bool = False,
    carry: Sequence[str] = CARRIED,
) -> Transform:
    """DecisionTreeTrain: the same with a tree as nested JSON, {"feature", "at_most", "yes", "no"} down to
    {"class"}.

    Rows with a null, or of a class that is not in `classes`, are left out; with none left, the model is null.
    """

    def train(requests: DataFrame) -> DataFrame:
        turn = _turn(requests, rows, (*features, label), classes)
        said = turn.trees(_quoted(features), _quoted(classes), max_depth, max_bins, shared, list(carry))
        return frame_of(said, requests.sparkSession)

    return train


def _turn(requests: DataFrame, rows: str, names: Sequence[str], classes: Sequence[str] = ()) -> Any:
    return jvm(requests.sparkSession).penstock.TrainingTurn(requests._jdf, rows, list(names), list(classes))


def _quoted(names: Sequence[str]) -> list[str]:
    return [json.dumps(name) for name in names]
