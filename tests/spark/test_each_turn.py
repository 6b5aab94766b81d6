from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, jobs_so_far
from tests.spark.streams import ARROW, SCHEMA, Kept, Row, folder_rows, from_spool, readings, table
from tests.spark.test_blame import failed

from penstock import Pipeline, Spool, sinks
from penstock.errors import PenstockError
from penstock.spark import granted_frames
from penstock.stages.build import OperatorError

pytestmark = pytest.mark.spark
ROWS = readings(120, seconds=30)
SUMMARY = "rows BIGINT, total DOUBLE"


def summed(frame: Any) -> Any:
    """The rows of a turn, counted by a job of its own."""
    [(rows, total)] = frame.selectExpr("count(*)", "sum(value)").collect()
    return frame.sparkSession.createDataFrame([(rows, total)], SUMMARY)


def by_id(row: Row) -> int:
    return int(row["id"])


def declared(source: Spool, function: Callable[[Any], Any], schema: str = SUMMARY) -> Pipeline:
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator("positive", lambda frame: frame.filter("value > 0"))
    stream.each_turn("summed", function, schema=schema).sink("out", KEPT.sink)
    return pipeline


KEPT = Kept()


@pytest.fixture(autouse=True)
def _empty_sink() -> None:
    KEPT.turns.clear()


def test_the_function_is_called_at_every_turn_with_just_its_rows(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, runs = spool(), engine()
    runs.submit(declared(source, summed))
    expected = []
    for start in range(0, 120, 40):
        source.append(table(ROWS[start : start + 40]))
        runs.drain()
        values = [row["value"] for row in ROWS[start : start + 40] if row["value"] > 0]
        expected.append({"rows": len(values), "total": sum(values)})
    assert KEPT.rows == expected
    assert {report.stage: report.kind for report in runs.stages()} == {"p.summed": "direct"}


def listed(frame: Any) -> Any:
    """The rows of a turn with an odd id, chosen by the driver."""
    import pyarrow as pa

    rows = frame.collect()
    assert frame.collect() == rows
    some = pa.Table.from_pylist([row.asDict() for row in rows if row["id"] % 2], schema=ARROW)
    return frame.sparkSession.createDataFrame(some)


@pytest.mark.parametrize("doubled", [False, True])
def test_a_small_turn_is_collected_and_answered_without_a_job_and_alike_with_one(
    engine: EngineFactory, spool: SpoolFactory, monkeypatch: pytest.MonkeyPatch, doubled: bool
) -> None:
    source, runs = spool(), engine()
    function = (lambda frame: listed(frame).unionByName(listed(frame))) if doubled else listed
    runs.submit(declared(source, function, SCHEMA))
    for start in (0, 40):
        before = jobs_so_far(runs.spark)
        source.append(table(ROWS[start : start + 40]))
        runs.drain()
        assert jobs_so_far(runs.spark) == before
    expected = [row for row in ROWS[:80] if row["value"] > 0 and row["id"] % 2]
    assert sorted(KEPT.rows, key=by_id) == sorted(expected * (1 + doubled), key=by_id)
    small = KEPT.turns[-1]
    monkeypatch.setattr(granted_frames, "ROWS_WITHOUT_A_JOB", -1)
    source.append(table(ROWS[40:80]))
    runs.drain()
    assert jobs_so_far(runs.spark) > before
    assert KEPT.turns[-1] == small


def test_what_is_made_of_a_small_turns_rows_is_of_the_same_rows(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, runs = spool(), engine()
    tasks = []

    def counted(frame: Any) -> Any:
        tasks.append(frame.rdd.getNumPartitions())
        assert frame.filter("id % 2 = 0").count() == sum(row["id"] % 2 == 0 for row in frame.collect())
        assert frame.join(frame.select("id"), "id").count() == frame.count() == frame.rdd.count()
        return summed(frame)

    runs.submit(declared(source, counted))
    for start in (0, 40):
        source.append(table(ROWS[start : start + 40]))
        runs.drain()
    assert [row["rows"] for row in KEPT.rows] == [
        sum(row["value"] > 0 for row in ROWS[start : start + 40]) for start in (0, 40)
    ]
    assert tasks == [1, 1]


def test_what_a_turn_persists_is_gone_in_the_next(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, runs = spool(), engine()

    def persisted(frame: Any) -> Any:
        frame.persist().count()
        return summed(frame.selectExpr("value + 1 as value").persist())

    runs.submit(declared(source, persisted))
    for start in (0, 40):
        source.append(table(ROWS[start : start + 40]))
        runs.drain()
    values = [[row["value"] for row in ROWS[at : at + 40] if row["value"] > 0] for at in (0, 40)]
    assert KEPT.rows == [{"rows": len(each), "total": sum(each) + len(each)} for each in values]
    assert runs.spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_a_regression_is_fitted_anew_at_every_turn_and_goes_through_a_queue(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.regression import LinearRegression

    def train(frame: Any) -> Any:
        points = VectorAssembler(inputCols=["id"], outputCol="features").transform(frame)
        model = LinearRegression(labelCol="value", solver="normal").fit(points)
        found = [(float(model.coefficients[0]), float(model.intercept), frame.count())]
        return frame.sparkSession.createDataFrame(
            found, "intercept DOUBLE, slope DOUBLE, n BIGINT"
        ).selectExpr("n", "intercept as slope", "slope as intercept")

    source, runs = spool(), engine()
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    fitted = stream.each_turn("train", train, schema="slope DOUBLE, intercept DOUBLE, n BIGINT")
    fitted.operator(
        "rounded", lambda frame: frame.selectExpr("n", "round(slope, 6) as slope", "intercept")
    ).sink("out", sinks.Parquet(tmp_path / "out"))
    runs.submit(pipeline)
    for slope in (3.0, -2.0):
        rows = [{**row, "value": slope * row["id"] + 5} for row in ROWS]
        source.append(table(rows))
        runs.drain()
    found = folder_rows(tmp_path / "out", order="slope")
    assert [(row["n"], row["slope"], round(row["intercept"], 6)) for row in found] == [
        (120, -2.0, 5.0),
        (120, 3.0, 5.0),
    ]
    assert [report.stage for report in runs.stages()] == ["p.train", "p.rounded"]


@pytest.mark.parametrize(
    ("function", "failure"),
    [
        (lambda frame: [1], "must return a DataFrame, got list"),
        (
            lambda frame: frame.selectExpr("id", "value as total"),
            "must return the columns rows bigint, total double, got id bigint, total double",
        ),
        (
            lambda frame: frame.selectExpr("id as rows", "cast(value as int) as total"),
            "must return the columns rows bigint, total double, got rows bigint, total int",
        ),
        (lambda frame: 1 / 0, "raised ZeroDivisionError: division by zero"),
    ],
    ids=["no DataFrame", "another column", "another type", "raises"],
)
def test_a_function_that_breaks_its_word_stops_the_pipeline_and_is_named(
    engine: EngineFactory, spool: SpoolFactory, function: Callable[[Any], Any], failure: str
) -> None:
    source, runs = spool(), engine()
    runs.submit(declared(source, function))
    source.append(table(ROWS))
    error = failed(runs)
    assert isinstance(error, OperatorError)
    assert (
        str(error) == f"operator 'summed' of pipeline 'p' {failure}: the pipeline stops, its queues are kept"
    )
    assert source.rows == 120


def test_columns_in_another_order_are_taken_by_name(engine: EngineFactory, spool: SpoolFactory) -> None:
    source, runs = spool(), engine()
    runs.submit(declared(source, lambda frame: summed(frame).select("total", "rows")))
    source.append(table(ROWS))
    runs.drain()
    assert list(KEPT.rows[0]) == ["rows", "total"]


@pytest.mark.parametrize("guilty", ["cast", "summed"])
def test_of_a_job_that_fails_the_operator_that_is_the_cause_is_named(
    engine: EngineFactory, spool: SpoolFactory, guilty: str
) -> None:
    source, runs = spool(), engine()
    broken = "cast(concat(sensor, 'x') as int) as value"
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator(
        "cast", lambda frame: frame.selectExpr("sensor", broken if guilty == "cast" else "value")
    )
    stream.each_turn(
        "summed",
        lambda frame: summed(frame.selectExpr(broken) if guilty == "summed" else frame),
        schema=SUMMARY,
    ).sink("out", KEPT.sink)
    runs.submit(pipeline)
    source.append(table(ROWS))
    error = failed(runs)
    assert isinstance(error, OperatorError)
    assert error.operator == guilty
    assert str(error).startswith(f"operator '{guilty}' of pipeline 'p' failed: [CAST_INVALID_INPUT]")


def test_state_that_was_not_declared_is_refused_at_the_start(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(spool()))
    stream = stream.operator("once", lambda frame: frame.dropDuplicates(["id"]))
    stream.each_turn("summed", summed, schema=SUMMARY).sink("out", KEPT.sink)
    with pytest.raises(PenstockError) as caught:
        engine().submit(pipeline)
    assert str(caught.value) == (
        "operator 'summed' of pipeline 'p', called at every turn, must be in a stage without state, "
        "got Deduplicate: put a queue() before it, or declare the operator with state as stateful"
    )


def test_declared_state_before_it_runs_in_a_stage_of_its_own(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, runs = spool(), engine()
    pipeline = Pipeline("p")
    stream = pipeline.source("readings", from_spool(source))
    stream = stream.operator("once", lambda frame: frame.dropDuplicates(["id"]), stateful=True)
    stream.each_turn("summed", summed, schema=SUMMARY).sink("out", KEPT.sink)
    runs.submit(pipeline)
    source.append(table([*ROWS, *ROWS]))
    runs.drain()
    assert sum(row["rows"] for row in KEPT.rows) == 120
    kinds = {report.stage: report.kind for report in runs.stages()}
    assert kinds == {"p.once": "held", "p.summed": "direct"}
