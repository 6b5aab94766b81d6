"""TRAIN's two trainings, with Spark MLlib: all requests that wait together are answered by one model.

Each is for `stream.each_turn(name, ..., schema=ANSWERS)`: a turn has the requests that waited for it, each
with its array of rows. One model is fitted to the rows of all of them, and every request gets it. RIoTBench
fits one for each request; a fit costs several Spark jobs, whose fixed cost the requests of a turn thus
share, and a row that several of them hold counts that often.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.riot.training_rows import CLASSES
from penstock.operators.transform import Transform

if TYPE_CHECKING:
    import pyarrow as pa
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

    def fit(examples: DataFrame) -> dict[str, Any]:
        from pyspark.ml.regression import LinearRegression

        trainer = LinearRegression(labelCol=label, solver="normal", regParam=regularisation)
        model = trainer.fit(_vectors(examples, features, label))
        coefficients = dict(zip(features, map(float, model.coefficients.toArray()), strict=True))
        return {"coefficients": coefficients, "intercept": float(model.intercept)}

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

    def fit(examples: DataFrame) -> dict[str, Any]:
        from pyspark.ml.classification import DecisionTreeClassifier
        from pyspark.sql import functions as F

        # The number of classes is said here, or Spark would run a job to find it.
        said = {"ml_attr": {"type": "nominal", "name": label, "vals": list(classes)}}
        number = F.array_position(F.array(*map(F.lit, classes)), F.col(label)).cast("double") - 1.0
        numbered = examples.withColumn(label, number.alias(label, metadata=said))
        trainer = DecisionTreeClassifier(labelCol=label, maxDepth=max_depth, maxBins=max_bins, seed=1)
        model = trainer.fit(_vectors(numbered, features, label))
        return _tree(model._call_java("rootNode"), features, classes)

    return _answering(fit, rows, (*features, label), allowed={label: classes})


def _answering(
    fit: Callable[[DataFrame], dict[str, Any]],
    rows: str,
    names: Sequence[str],
    allowed: dict[str, Sequence[str]] | None = None,
) -> Transform:
    def train(requests: DataFrame) -> DataFrame:
        # The turn's one pass over its plan: what the fit's jobs read again and again is a local table.
        waiting = requests.select("msgid", "arrived", rows).toArrow()
        examples = _examples(waiting[rows], names, allowed or {})
        session = requests.sparkSession
        model = None
        if examples.num_rows:
            # In one part: the work of a fit is small beside the cost of its tasks.
            model = fit(session.createDataFrame(examples).coalesce(1))
        said = {"model": model, "rows": examples.num_rows, "requests": waiting.num_rows}
        return session.createDataFrame(_answers(waiting, json.dumps(said)))

    return train


def _examples(arrays: pa.ChunkedArray, names: Sequence[str], allowed: dict[str, Sequence[str]]) -> pa.Table:
    """The rows of all arrays that have no null in the columns named."""
    import pyarrow as pa
    import pyarrow.compute as pc

    flat = arrays.combine_chunks().flatten()
    table = pa.table({name: pc.struct_field(flat, name) for name in names}).drop_null()
    for name, values in allowed.items():
        table = table.filter(pc.is_in(table[name], pa.array(list(values))))
    return table


def _answers(waiting: pa.Table, payload: str) -> pa.Table:
    import pyarrow as pa

    said = pa.array([payload] * waiting.num_rows, pa.string())
    return waiting.select(["msgid", "arrived"]).append_column("payload", said)


def _vectors(examples: DataFrame, features: Sequence[str], label: str) -> DataFrame:
    from pyspark.ml.feature import VectorAssembler

    assembler = VectorAssembler(inputCols=list(features), outputCol="features", handleInvalid="keep")
    return assembler.transform(examples).select("features", label)


def _tree(node: Any, features: Sequence[str], classes: Sequence[str]) -> dict[str, Any]:
    """A tree of the JVM as nested dictionaries."""
    if node.subtreeDepth() == 0:
        return {"class": classes[int(node.prediction())]}
    split = node.split()
    return {
        "feature": features[split.featureIndex()],
        "at_most": split.threshold(),
        "yes": _tree(node.leftChild(), features, classes),
        "no": _tree(node.rightChild(), features, classes),
    }
