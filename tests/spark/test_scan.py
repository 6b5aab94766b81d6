"""Recurrences over the rows of a key: against plain Python, over turns and restarts, and their refusals."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from penstock import Pipeline, Spool, sinks, sources
from penstock.errors import PenstockError
from penstock.operators.scan import Recurrence, scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tests.spark.conftest import EngineFactory

SCHEMA = "id BIGINT, sensor STRING, value DOUBLE"
Rows = list[tuple[int, str, float | None]]

# The sum of what came, and how many: enough to tell order, restarts and forgotten keys.
RUNNING = Recurrence(
    start={"total": 0.0, "n": 0},
    step=lambda state, row: {"total": state.total * 0.5 + row.value, "n": state.n + 1},
    emit=lambda state, row: {"total": state.total, "n": state.n},
)


def running(rows: Rows) -> dict[int, tuple[float, int]]:
    """The same in plain Python."""
    kept: dict[str, tuple[float, int]] = {}
    found = {}
    for id, sensor, value in sorted(rows):
        total, n = kept.get(sensor, (0.0, 0))
        assert value is not None
        kept[sensor] = found[id] = (total * 0.5 + value, n + 1)
    return found


def some_rows(count: int, seed: int = 1) -> Rows:
    chance = random.Random(seed)
    return [(id, f"s{chance.randrange(5)}", chance.uniform(-10, 10)) for id in range(count)]


def frame(spark: SparkSession, rows: Rows) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA)


def prepared(spark: SparkSession) -> SparkSession:
    from penstock.spark.session import prepare_session

    prepare_session(spark)
    return spark


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-100, 100)), min_size=1, max_size=40))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_scan_equals_the_same_recurrence_in_plain_python(
    spark: SparkSession, drawn: list[tuple[str, float]]
) -> None:
    rows: Rows = [(id, sensor, value) for id, (sensor, value) in enumerate(drawn)]
    shuffled = random.Random(0).sample(rows, len(rows))
    found = scan(frame(prepared(spark), shuffled), RUNNING, by="sensor", order="id").collect()
    assert {row.id: (row.total, row.n) for row in found} == running(rows)


def test_only_the_rows_asked_for_leave_and_a_forgotten_key_begins_anew(spark: SparkSession) -> None:
    blocks = Recurrence(
        start={"values": F.array().cast("array<double>")},
        step=lambda state, row: {"values": F.concat(state["values"], F.array(row.value))},
        emit=lambda state, row: {"mean": F.aggregate(state["values"], F.lit(0.0), lambda a, b: a + b) / 3},
        emits_if=lambda state, row: F.size(state["values"]) == 3,
        forgets_if=lambda state, row: F.size(state["values"]) == 3,
    )
    rows: Rows = [(id, "a", float(id)) for id in range(8)]
    found = scan(frame(prepared(spark), rows), blocks, by="sensor", order="id").collect()
    assert sorted((row.id, row.mean) for row in found) == [(2, 1.0), (5, 4.0)]


def test_expressions_that_spark_rewrites_before_it_runs_them_are_understood(spark: SparkSession) -> None:
    rewritten = Recurrence(
        start={"seen": 0},
        step=lambda state, row: {"seen": state.seen + F.when(row.value.between(0, 5), 1).otherwise(0)},
        emit=lambda state, row: {"known": F.nvl(F.nullif(row.value, F.lit(2.0)), F.lit(-1.0))},
    )
    rows: Rows = [(0, "a", 2.0), (1, "a", None), (2, "a", 7.0)]
    found = scan(frame(prepared(spark), rows), rewritten, by="sensor", order="id").collect()
    assert sorted((row.id, row.known) for row in found) == [(0, -1.0), (1, -1.0), (2, 7.0)]


def test_rows_with_nulls_times_and_nested_columns_come_through_unchanged(spark: SparkSession) -> None:
    given = prepared(spark).sql(
        "SELECT * FROM VALUES (1, 'a', TIMESTAMP '2020-01-01 00:00:01', array(1, 2), struct(1.5D)),"
        " (2, NULL, NULL, NULL, NULL) AS t(id, sensor, ts, numbers, inner)"
    )
    counted = Recurrence({"n": 0}, lambda state, row: {"n": state.n + 1}, lambda state, row: {"n": state.n})
    found = scan(given, counted, by="sensor", order="id").drop("n")
    assert found.schema.simpleString() == given.schema.simpleString()
    assert sorted(map(repr, found.collect())) == sorted(map(repr, given.collect()))


def test_a_state_may_have_nulls_where_its_start_has_none(spark: SparkSession) -> None:
    last = Recurrence(
        start={"three": F.array_repeat(F.lit(0.0), 3)},
        step=lambda state, row: {"three": F.slice(F.concat(F.array(row.value), state.three), 1, 3)},
        emit=lambda state, row: {"three": state.three},
    )
    rows: Rows = [(0, "a", 1.5), (1, "a", None)]
    found = scan(frame(prepared(spark), rows), last, by="sensor", order="id").collect()
    assert sorted((row.id, row.three) for row in found) == [(0, [1.5, 0.0, 0.0]), (1, [None, 1.5, 0.0])]


def table(rows: Rows) -> pa.Table:
    ids, sensors, values = zip(*rows, strict=True)
    return pa.table({"id": list(ids), "sensor": list(sensors), "value": list(values)})


@pytest.mark.parametrize("turns", [1, 7])
def test_turns_of_any_size_and_a_restart_in_the_middle_change_no_result(
    engine: EngineFactory, tmp_path: Path, turns: int
) -> None:
    rows = some_rows(210)
    found: dict[int, tuple[float, int]] = {}

    def keep(rows: pa.Table, turn: int) -> None:
        found.update({row["id"]: (row["total"], row["n"]) for row in rows.to_pylist()})

    for part in (rows[:90], rows[90:]):
        with Spool(tmp_path / "in") as spool:
            pipeline = Pipeline("scanned")
            source = pipeline.source("in", sources.FromSpool(spool, SCHEMA))
            operator = source.operator(
                "running", lambda rows: scan(rows, RUNNING, by="sensor", order="id"), stateful=True
            )
            operator.sink("out", sinks.Callback(keep))
            running_engine = engine(tmp_path / "state")
            running_engine.submit(pipeline)
            size = -(-len(part) // turns)
            for start in range(0, len(part), size):
                spool.append(table(part[start : start + size]))
                if turns > 1:
                    running_engine.drain(30)
            running_engine.drain(30)
            running_engine.stop()
    assert found == running(rows)


def test_state_that_another_recurrence_kept_is_refused(engine: EngineFactory, tmp_path: Path) -> None:
    wider = Recurrence(
        start={"total": 0.0, "n": 0, "least": 0.0},
        step=lambda state, row: {"total": state.total, "n": state.n, "least": row.value},
        emit=lambda state, row: {"n": state.n},
    )
    for recurrence in (RUNNING, wider):
        with Spool(tmp_path / "in") as spool:
            pipeline = Pipeline("scanned")
            source = pipeline.source("in", sources.FromSpool(spool, SCHEMA))
            operator = source.operator(
                "running", lambda rows, by=recurrence: scan(rows, by, by="sensor", order="id"), stateful=True
            )
            operator.sink("out", sinks.Callback(lambda table, turn: None))
            runs = engine(tmp_path / "state")
            runs.submit(pipeline)
            spool.append(table(some_rows(20)))
            if recurrence is RUNNING:
                runs.drain(30)
            else:
                with pytest.raises(PenstockError, match="the state of a scan must be read by the recurrence"):
                    runs.drain(30)
            runs.stop()


def test_a_step_that_leaves_out_part_of_the_state_is_refused(spark: SparkSession) -> None:
    forgetful = Recurrence({"a": 0, "b": 0}, lambda state, row: {"a": state.a}, lambda state, row: {})
    with pytest.raises(PenstockError) as refused:
        scan(frame(prepared(spark), some_rows(1)), forgetful, by="sensor")
    assert str(refused.value) == "a step must give all of the state, ['a', 'b'], and nothing else, got ['a']"


def test_unknown_columns_are_named(spark: SparkSession) -> None:
    rows = frame(prepared(spark), some_rows(1))
    with pytest.raises(PenstockError) as refused:
        scan(rows, RUNNING, by="source")
    assert str(refused.value) == (
        "a scan must be by columns that its rows have, got source: they have ['id', 'sensor', 'value']"
    )
    wrong = Recurrence({"a": 0.0}, lambda state, row: {"a": row.volume}, lambda state, row: {})
    with pytest.raises(PenstockError) as unknown:
        scan(rows, wrong, by="sensor")
    assert str(unknown.value) == "the row has no column 'volume', of ['id', 'sensor', 'value']"


def test_a_step_that_needs_more_than_its_row_is_refused(spark: SparkSession) -> None:
    summing = Recurrence({"a": 0.0}, lambda state, row: {"a": F.sum(row.value)}, lambda state, row: {})
    with pytest.raises(PenstockError, match="a step must be made of expressions over one row and its state"):
        scan(frame(prepared(spark), some_rows(1)), summing, by="sensor")
