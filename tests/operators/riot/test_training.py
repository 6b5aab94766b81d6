from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import strategies as st
from tests.operators.riot import reference
from tests.operators.riot.drawn import assert_each_close, drawn
from tests.operators.riot.inputs import ARRIVED, readings
from tests.spark.conftest import jobs_so_far

from penstock.operators import riot
from penstock.operators.riot.training import FEATURES
from penstock.operators.riot.training_rows import CLASSES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = pytest.mark.spark
TABLE = [readings(random.Random(number)) for number in range(120)]


def requests(spark: SparkSession, *ranges: tuple[int | None, int | None]) -> DataFrame:
    rows = [(number, ARRIVED, *pair) for number, pair in enumerate(ranges)]
    return spark.createDataFrame(rows, "msgid BIGINT, arrived TIMESTAMP, rowstart BIGINT, rowend BIGINT")


def payloads(made: DataFrame) -> list[Any]:
    rows = sorted(made.collect(), key=lambda row: row["msgid"])
    assert made.columns == ["msgid", "arrived", "payload"]
    return [json.loads(row["payload"]) for row in rows]


def decided(tree: Any, row: dict[str, float]) -> str:
    while "class" not in tree:
        tree = tree["yes"] if row[tree["feature"]] <= tree["at_most"] else tree["no"]
    return str(tree["class"])


def test_a_request_gets_its_range_of_the_table_as_far_as_there_is_one(spark: SparkSession) -> None:
    asked = ((3, 7), (118, 500), (-5, 2), (9, 9), (9, 4), (200, 300), (None, 4))
    made = riot.read_rows(TABLE)(requests(spark, *asked)).orderBy("msgid").collect()
    found = [None if row["rows"] is None else [list(each) for each in row["rows"]] for row in made]
    assert found == [TABLE[3:7], TABLE[118:], TABLE[:2], [], [], [], None]


def test_classes_follow_the_percentiles_of_each_request_by_itself(spark: SparkSession) -> None:
    table = [*TABLE, [1.0, 2.0, 3.0, 4.0, None]]
    asked = ((0, 40), (37, 38), (20, 117), (118, 121), (5, 5))
    made = riot.annotate_class()(riot.read_rows(table)(requests(spark, *asked))).orderBy("msgid").collect()
    for row, (first, end) in zip(made, asked, strict=True):
        values = [each[4] for each in table[first:end] if each[4] is not None]
        expected = reference.classes(values) if values else []
        assert [each["class"] for each in row["rows"] if each["airquality_raw"] is not None] == expected
        assert [each["class"] for each in row["rows"] if each["airquality_raw"] is None] == [None] * (
            end - first - len(values)
        )


def test_every_request_gets_the_regression_of_its_own_rows(spark: SparkSession) -> None:
    ranges = ((0, 50), (40, 90), (7, 7), (None, 4))
    answers = payloads(riot.regression_training()(riot.read_rows(TABLE)(requests(spark, *ranges))))
    assert answers[2:] == [{"model": None, "rows": 0}] * 2
    for answer, (first, end) in zip(answers[:2], ((0, 50), (40, 90)), strict=True):
        assert model_numbers(answer) == pytest.approx(solved(TABLE[first:end]))
        assert answer["rows"] == 50


def solved(rows: list[list[float]]) -> list[float]:
    """Coefficients and intercept by plain least squares."""
    table = np.array(rows)
    design = np.column_stack([table[:, [0, 1, 3]], np.ones(len(table))])
    return [float(each) for each in np.linalg.lstsq(design, table[:, 4], rcond=None)[0]]


def model_numbers(answer: Any) -> list[float]:
    model = answer["model"]
    return [*(model["coefficients"][name] for name in FEATURES), model["intercept"]]


def test_requests_that_share_a_model_get_one_over_the_rows_of_all(spark: SparkSession) -> None:
    asked = riot.read_rows(TABLE)(requests(spark, (0, 50), (40, 90), (7, 7)))
    answers = payloads(riot.regression_training(shared=True)(asked))
    assert len(answers) == 3
    for answer in answers:
        assert model_numbers(answer) == pytest.approx(solved(TABLE[0:50] + TABLE[40:90]))
        assert (answer["rows"], answer["requests"]) == (100, 3)


def test_a_model_is_the_same_whoever_else_was_in_the_turn_and_costs_no_job_of_its_own(
    spark: SparkSession,
) -> None:
    ranges = [(first, first + length) for first, length in ((0, 30), (5, 1), (20, 90), (7, 0), (60, 60))]
    for training in (riot.regression_training(), riot.tree_training()):
        asked = riot.annotate_class()(riot.read_rows(TABLE)(requests(spark, *ranges)))
        before = jobs_so_far(spark)
        together = training(asked)
        jobs = jobs_so_far(spark) - before
        alone = [
            payloads(training(riot.annotate_class()(riot.read_rows(TABLE)(requests(spark, each)))))[0]
            for each in ranges
        ]
        assert payloads(together) == alone
        # What brings the rows, which a turn has anyway.
        assert jobs <= 1


bounds = st.tuples(*[st.one_of(st.none(), st.integers(-20, 160), st.integers(0, 120))] * 2)


def test_rows_classes_and_regressions_of_drawn_requests_are_those_of_plain_python(
    spark: SparkSession,
) -> None:
    cases = drawn(bounds, 80)
    asked = riot.annotate_class()(riot.read_rows(TABLE)(requests(spark, *cases)))
    read = [row["rows"] for row in sorted(asked.collect(), key=lambda row: row["msgid"])]
    found, expected = [], []
    for rows, answer, (first, end) in zip(
        read, payloads(riot.regression_training()(asked)), cases, strict=True
    ):
        wanted = [] if first is None or end is None else TABLE[max(first, 0) : max(end, 0)]
        classes = reference.classes([row[4] for row in wanted]) if wanted else []
        found.append([[*each] for each in rows or []])
        expected.append([[*row, kind] for row, kind in zip(wanted, classes, strict=True)])
        assert answer["rows"] == len(wanted)
        # Of fewer, many lines go through all.
        if len(wanted) > 8:
            assert model_numbers(answer) == pytest.approx(solved(wanted), rel=1e-6)
    assert_each_close(cases, found, expected)


def test_other_columns_can_be_carried_and_names_are_quoted(spark: SparkSession) -> None:
    some = [(5, [("small", 1.0), ("large", 9.0)])]
    asked = spark.createDataFrame(some, 'id INT, rows ARRAY<STRUCT<class: STRING, `a "size"`: DOUBLE>>')
    made = riot.tree_training(['a "size"'], classes=["small", "large"], carry=["id"])(asked)
    assert made.columns == ["id", "payload"]
    [row] = made.collect()
    assert json.loads(row["payload"])["model"] == {
        "feature": 'a "size"',
        "at_most": 5.0,
        "yes": {"class": "small"},
        "no": {"class": "large"},
    }


def test_a_tree_finds_the_rule_that_the_classes_follow(spark: SparkSession) -> None:
    chance = random.Random(8)
    table: list[list[float | None]] = []
    for _ in range(200):
        warm, wet = chance.random() < 0.5, chance.random() < 0.5
        quality = 10.0 + 20.0 * warm + (5.0 * wet if warm else 0.0)
        table.append([30.0 if warm else 5.0, 60.0 if wet else 30.0, 0.0, chance.uniform(90, 300), quality])
    asked = riot.annotate_class()(riot.read_rows(table)(requests(spark, (0, 200))))
    rows = asked.selectExpr("inline(rows)").collect()
    [answer] = payloads(riot.tree_training()(asked))
    assert {decided(answer["model"], row.asDict()) == row["class"] for row in rows} == {True}
    assert answer["rows"] == 200


def numbers(count: int, seed: int) -> list[list[float]]:
    """Rows with zeros, values that come often, and a column that never changes."""
    chance = random.Random(seed)
    return [
        [
            chance.choice([0.0, 0.0, 1.5, -2.0]),
            chance.gauss(20.0, 9.0),
            4.0,
            float(chance.randrange(40)),
            quality,
        ]
        for quality in (chance.uniform(0.0, 50.0) for _ in range(count))
    ]


def assembled(asked: DataFrame, label: Column) -> DataFrame:
    """The rows of all requests as MLlib's estimators want them."""
    from pyspark.ml.feature import VectorAssembler

    rows = asked.selectExpr("inline(rows)").withColumn("label", label).coalesce(1)
    return VectorAssembler(inputCols=list(FEATURES), outputCol="features").transform(rows)


def tree_of(node: Any) -> dict[str, Any]:
    if node.subtreeDepth() == 0:
        return {"class": CLASSES[int(node.prediction())]}
    split = node.split()
    return {
        "feature": FEATURES[split.featureIndex()],
        "at_most": split.threshold(),
        "yes": tree_of(node.leftChild()),
        "no": tree_of(node.rightChild()),
    }


@pytest.mark.parametrize(
    ("count", "depth", "bins"), [(1, 3, 32), (2, 3, 32), (100, 3, 32), (400, 5, 7), (10_500, 2, 32)]
)
def test_a_tree_is_the_one_that_the_estimator_of_mllib_grows(
    spark: SparkSession, count: int, depth: int, bins: int
) -> None:
    from pyspark.ml.classification import DecisionTreeClassifier
    from pyspark.sql import functions as F

    read = riot.annotate_class()(riot.read_rows(numbers(count, seed=count))(requests(spark, (0, count))))
    asked = spark.createDataFrame(read.collect(), read.schema)
    [answer] = payloads(riot.tree_training(max_depth=depth, max_bins=bins)(asked))
    said = {"ml_attr": {"type": "nominal", "vals": list(CLASSES)}}
    place = F.array_position(F.array(*map(F.lit, CLASSES)), F.col("class")).cast("double") - 1.0
    examples = assembled(asked, place.alias("label", metadata=said))
    grown = DecisionTreeClassifier(maxDepth=depth, maxBins=bins, seed=1).fit(examples)
    assert answer["model"] == tree_of(grown._call_java("rootNode"))
    assert answer["rows"] == count


@pytest.mark.parametrize(("count", "regularisation"), [(1, 0.0), (3, 0.0), (100, 0.0), (100, 0.3)])
def test_a_regression_is_the_one_that_the_estimator_of_mllib_finds(
    spark: SparkSession, count: int, regularisation: float
) -> None:
    from pyspark.ml.regression import LinearRegression
    from pyspark.sql import functions as F

    asked = riot.read_rows(numbers(count, seed=count))(requests(spark, (0, count)))
    [answer] = payloads(riot.regression_training(regularisation=regularisation)(asked))
    examples = assembled(asked, F.col("airquality_raw"))
    found = LinearRegression(solver="normal", regParam=regularisation).fit(examples)
    assert list(answer["model"]["coefficients"].values()) == pytest.approx(list(found.coefficients))
    assert answer["model"]["intercept"] == pytest.approx(found.intercept)


def test_rows_of_an_unknown_class_and_requests_without_rows_are_left_out(spark: SparkSession) -> None:
    columns = "msgid BIGINT, arrived TIMESTAMP, rows ARRAY<STRUCT<class: STRING, size: INT>>"
    some = [("small", 1), ("large", 5), None, ("odd", 9), ("large", 6), ("small", None)]
    asked = spark.createDataFrame(
        [(1, ARRIVED, some), (2, ARRIVED, None), (3, ARRIVED, [("small", 2)])], columns
    )
    training = {"features": ["size"], "classes": ["small", "large"]}

    def grown(at_most: float) -> dict[str, Any]:
        return {"feature": "size", "at_most": at_most, "yes": {"class": "small"}, "no": {"class": "large"}}

    assert payloads(riot.tree_training(**training)(asked)) == [
        {"model": grown(3.0), "rows": 3},
        {"model": None, "rows": 0},
        {"model": {"class": "small"}, "rows": 1},
    ]
    shared = payloads(riot.tree_training(**training, shared=True)(asked))
    assert shared == [{"model": grown(3.5), "rows": 4, "requests": 3}] * 3


def test_rows_with_a_null_are_left_out_and_without_any_row_the_model_is_null(spark: SparkSession) -> None:
    table = [[None, 2.0, 3.0, 4.0, 5.0], *TABLE[:30], [1.0, 2.0, 3.0, 4.0, None]]
    asked = riot.annotate_class()(riot.read_rows(table)(requests(spark, (0, 32))))
    for training, rows in ((riot.regression_training(), 30), (riot.tree_training(), 30)):
        assert [answer["rows"] for answer in payloads(training(asked))] == [rows]
    nothing = riot.annotate_class()(riot.read_rows(TABLE)(requests(spark, (500, 600), (3, 1))))
    for training in (riot.regression_training(), riot.tree_training()):
        assert payloads(training(nothing)) == [{"model": None, "rows": 0}] * 2
