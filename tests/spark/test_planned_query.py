"""From its second turn on a stage with state runs over one plan, without a query of Spark's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import EngineFactory, SpoolFactory, eventually, jobs_so_far
from tests.spark.streams import (
    AGGREGATES,
    Kept,
    Row,
    Windows,
    at,
    from_spool,
    reading,
    readings,
    spool_rows,
    table,
    window_rows,
)

from penstock import Engine, Pipeline, Spool, sinks
from penstock.errors import PenstockError
from penstock.spark import held, planned_query
from penstock.spark.ends import QueueEnd

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
WINDOWS = Windows(4, late=1.0)
ROWS = readings(240, seconds=48, disorder=1.0)
PARTS = [ROWS[start : start + 20] for start in range(0, len(ROWS), 20)]


def counted(source: Spool, kept: Kept, parallelism: int = 1) -> Pipeline:
    pipeline = Pipeline("p")
    pipeline.source("readings", from_spool(source)).window(
        "w",
        on="ts",
        size=float(WINDOWS.size),
        late=WINDOWS.late,
        by="sensor",
        aggregate=AGGREGATES,
        parallelism=parallelism,
    ).sink("out", kept.sink)
    return pipeline


def with_state(
    source: Spool, kept: Kept, operator: Callable[[DataFrame], DataFrame], slots: int = 1
) -> Pipeline:
    pipeline = Pipeline("p")
    read = pipeline.source("readings", from_spool(source))
    rows = read.operator("it", operator, stateful=True, parallelism=slots)
    rows.sink("out", kept.sink)
    return pipeline


def in_turns(engine: Engine, source: Spool, parts: Sequence[Sequence[Row]]) -> None:
    """Each part in turns of its own."""
    for part in parts:
        source.append(table(part))
        engine.drain(60)


def queries(spark: SparkSession) -> int:
    return len(spark.streams.active)


def test_no_query_is_left_after_the_first_turns_and_windows_are_those_of_a_plain_computation(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine(policy="fifo")
    before = queries(spark)
    [stage] = runs.submit(counted(source, kept)).stages
    eventually(lambda: stage.journal.entry.batch == 0)
    assert queries(spark) == before + 1
    in_turns(runs, source, PARTS)
    assert queries(spark) == before
    assert window_rows(kept.rows) == WINDOWS.expected(ROWS)


def test_a_turn_on_one_slot_runs_without_a_job(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine(policy="fifo")
    runs.submit(counted(source, kept))
    in_turns(runs, source, PARTS[:3])
    before = jobs_so_far(spark)
    in_turns(runs, source, PARTS[3:])
    assert jobs_so_far(spark) == before
    assert window_rows(kept.rows) == WINDOWS.expected(ROWS)


@pytest.mark.parametrize(("worth", "whole"), [(10, True), (1000, False)], ids=["large", "small"])
def test_whole_stages_that_read_rows_are_compiled_for_many_and_give_the_same_windows(
    monkeypatch: pytest.MonkeyPatch, engine: EngineFactory, spool: SpoolFactory, worth: int, whole: bool
) -> None:
    monkeypatch.setattr(planned_query, "ROWS_WORTH_WHOLE_STAGES", worth)
    source, kept, runs = spool(), Kept(), engine(policy="fifo")
    runs.submit(counted(source, kept))
    in_turns(runs, source, PARTS)
    stage = runs._pipelines["p"].stages[0]
    assert isinstance(stage, held.HeldStage)
    assert isinstance(stage._query, planned_query.PlannedQuery)
    plan = stage._query._batches.execution().executedPlan().treeString()
    # As rows are read they are counted by key; what follows is of few groups, with those of the state.
    aggregations = [line for line in plan.splitlines() if "HashAggregate" in line]
    assert [line.lstrip(" :+-").startswith("*") for line in aggregations] == [False, False, whole, whole]
    assert ("*(" in plan) == whole
    assert stage._query._can_be_whole
    assert "EventTimeWatermark" not in plan
    assert window_rows(kept.rows) == WINDOWS.expected(ROWS)


def test_several_slots_share_the_rows_of_a_planned_turn(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine(policy="fifo")
    before = queries(spark)
    runs.submit(counted(source, kept, parallelism=2))
    in_turns(runs, source, PARTS)
    assert queries(spark) == before
    assert window_rows(kept.rows) == WINDOWS.expected(ROWS)


@pytest.mark.parametrize(
    "order", [(True, False, True), (False, True, False)], ids=["planned-first", "spark-first"]
)
def test_a_checkpoint_is_one_for_sparks_query_and_for_planned_turns(
    monkeypatch: pytest.MonkeyPatch, engine: EngineFactory, spool: SpoolFactory, order: Sequence[bool]
) -> None:
    source, kept = spool(), Kept()
    for number, planned in enumerate(order):
        monkeypatch.setattr(held, "PLANNED_ONCE", planned)
        runs = engine(policy="fifo")
        runs.submit(counted(source, kept))
        in_turns(runs, source, PARTS[4 * number : 4 * number + 4])
        runs.stop()
    assert window_rows(kept.rows) == WINDOWS.expected(ROWS)


@pytest.mark.parametrize("slots", [(1, 2, 1), (2, 1, 2)], ids=str)
def test_a_stage_whose_state_is_divided_goes_on_over_its_plan_on_as_many_slots(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory, slots: Sequence[int]
) -> None:
    source, kept, runs = spool(), Kept(), engine(policy="fifo", state_store="rocksdb")
    before = queries(spark)
    runs.submit(counted(source, kept, parallelism=slots[0]))
    for number, each in enumerate(slots):
        runs.set_slots({"p.w": each})
        in_turns(runs, source, PARTS[4 * number : 4 * number + 1])
        # Spark has planned the batch by which the stage started; no query of its own comes any more.
        assert queries(spark) == before
        in_turns(runs, source, PARTS[4 * number + 1 : 4 * number + 4])
        stage = runs._pipelines["p"].stages[0]
        assert isinstance(stage, held.HeldStage)
        assert isinstance(stage._query, planned_query.PlannedQuery)
        last = stage._query._batches.execution()
        assert last.numStateStores() == each
        assert last.executedPlan().execute().getNumPartitions() == each
    assert window_rows(kept.rows) == WINDOWS.expected(ROWS)
    runs.stop()
    again = engine(policy="fifo", state_store="rocksdb")
    again.submit(counted(source, kept, parallelism=slots[0]))
    assert again.slots == {"p.w": slots[-1]}
    in_turns(again, source, [[reading(1000, 1000.0)]])
    assert window_rows(kept.rows) == WINDOWS.expected([*ROWS, reading(1000, 1000.0)])


def test_a_deduplication_that_watches_event_time_takes_a_new_query_where_two_slots_become_one(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    def once(rows: DataFrame) -> DataFrame:
        return rows.withWatermark("ts", "10 seconds").dropDuplicates(["id", "ts"])

    source, kept, runs = spool(), Kept(), engine(policy="fifo", state_store="rocksdb")
    before = queries(spark)
    runs.submit(with_state(source, kept, once, slots=2))
    in_turns(runs, source, PARTS[:3])
    assert queries(spark) == before
    runs.set_slots({"p.it": 1})
    in_turns(runs, source, PARTS[2:3])
    assert queries(spark) == before + 1
    in_turns(runs, source, PARTS[3:6])
    assert sorted(row["id"] for row in kept.rows) == list(range(120))


def test_old_logs_and_state_of_planned_turns_are_removed(
    engine: EngineFactory, spool: SpoolFactory, state: Path
) -> None:
    source, kept, runs = spool(), Kept(), engine(state, policy="fifo")
    runs.submit(counted(source, kept))
    in_turns(runs, source, [[row] for row in ROWS[:32]])
    [offsets] = state.rglob("checkpoint/offsets")
    numbers = sorted(int(file.name) for file in offsets.iterdir() if file.name.isdigit())
    assert numbers[-1] >= 31
    # Ten are kept, and they are looked at after every tenth.
    assert len(numbers) <= 21
    assert {file.name for file in (offsets.parent / "commits").iterdir()} >= {str(numbers[-1])}


def test_a_plan_that_takes_in_the_present_time_is_made_at_every_turn(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    from pyspark.sql import functions as F

    source, kept, runs = spool(), Kept(), engine(policy="fifo")
    before = queries(spark)
    runs.submit(
        with_state(
            source, kept, lambda rows: rows.dropDuplicates(["id"]).withColumn("now", F.current_timestamp())
        )
    )
    in_turns(runs, source, PARTS[:4])
    assert queries(spark) == before + 1
    moments = [{row["now"] for row in turn} for turn in kept.turns if turn]
    assert all(len(each) == 1 for each in moments)
    assert len(set.union(*moments)) == len(moments)


def test_a_join_with_a_table_is_planned_at_every_turn(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine(policy="fifo")
    names = spark.createDataFrame([("a", "Ada"), ("b", "Bo"), ("c", "Cy")], "sensor STRING, full STRING")
    before = queries(spark)
    runs.submit(with_state(source, kept, lambda rows: rows.dropDuplicates(["id"]).join(names, "sensor")))
    in_turns(runs, source, PARTS[:4])
    assert queries(spark) == before + 1
    assert sorted(row["id"] for row in kept.rows) == list(range(80))


def test_session_windows_go_on_over_one_plan(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    from pyspark.sql import functions as F

    def sessions(rows: DataFrame) -> DataFrame:
        found = rows.withWatermark("ts", "0 seconds").groupBy(F.session_window("ts", "3 seconds"), "sensor")
        return found.agg(F.count("*").alias("n")).select("sensor", "session_window.start", "n")

    source, kept, runs = spool(), Kept(), engine(policy="fifo")
    before = queries(spark)
    runs.submit(with_state(source, kept, sessions))
    moments = [0.0, 1.0, 2.5, 10.0, 11.0, 30.0, 31.0, 50.0, 70.0]
    in_turns(runs, source, [[reading(number, moment)] for number, moment in enumerate(moments)])
    assert queries(spark) == before
    assert sorted((row["start"], row["n"]) for row in kept.rows) == [
        (at(0), 3),
        (at(10), 2),
        (at(30), 2),
        (at(50), 1),
    ]


def pairs(rows: DataFrame) -> DataFrame:
    """How many pairs the rows of each sensor make in a window: a join of the stream with itself."""
    from pyspark.sql import functions as F

    timed = rows.withWatermark("ts", f"{WINDOWS.late} seconds")
    timed = timed.withColumn("window", F.window("ts", f"{WINDOWS.size} seconds"))
    ones = timed.select("window", "sensor")
    others = timed.select(F.col("window").alias("other_window"), F.col("sensor").alias("other"))
    joined = ones.join(others, F.expr("sensor = other and window = other_window"))
    again = F.window(F.window_time("window"), f"{WINDOWS.size} seconds")
    counts = joined.groupBy(again).agg(F.count("*").alias("pairs"))
    return counts.select(F.col("window.start").alias("start"), "pairs")


@pytest.mark.parametrize(("restarts", "slots"), [(False, 1), (True, 1), (False, 2)])
def test_a_join_within_windows_and_what_counts_its_pairs_go_on_over_one_plan(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory, restarts: bool, slots: int
) -> None:
    source, kept, before = spool(), Kept(), queries(spark)
    for parts in (PARTS[:6], PARTS[6:]) if restarts else (PARTS,):
        runs = engine(policy="fifo")
        runs.submit(with_state(source, kept, pairs, slots))
        in_turns(runs, source, parts)
        assert queries(spark) == before
        # Of a window that has left: nobody's pair any more.
        source.append(table([parts[0][0]]))
        runs.drain(60)
        runs.stop()
    found = {int(row["start"].timestamp()): row["pairs"] for row in kept.rows}
    expected: dict[int, int] = {}
    for start, _, count, _ in WINDOWS.expected(ROWS):
        expected[start] = expected.get(start, 0) + count**2
    assert len(kept.rows) == len(expected)
    assert found == expected


def triples(rows: DataFrame) -> DataFrame:
    """Each row with itself and itself: two joins, neither of which forgets."""
    from pyspark.sql import functions as F

    timed = rows.withWatermark("ts", "1 second")
    second, third = (timed.select(F.col("id").alias(name)) for name in ("second", "third"))
    return timed.select("id").join(second, F.expr("id = second")).join(third, F.expr("second = third"))


@pytest.mark.parametrize(("operator", "finds"), [(pairs, 11), (triples, len(ROWS))], ids=["pairs", "triples"])
def test_joins_whose_state_is_divided_on_the_way_find_all_they_did(
    engine: EngineFactory,
    spool: SpoolFactory,
    state: Path,
    operator: Callable[[DataFrame], DataFrame],
    finds: int,
) -> None:
    found = []
    for slots in ((1, 1, 1), (1, 2, 1)):
        source, kept = spool(f"for-{slots[1]}"), Kept()
        runs = engine(state / str(slots[1]), policy="fifo", state_store="rocksdb")
        runs.submit(with_state(source, kept, operator))
        for number, each in enumerate(slots):
            runs.set_slots({"p.it": each})
            in_turns(runs, source, PARTS[4 * number : 4 * number + 4])
        runs.stop()
        found.append(sorted(map(str, kept.rows)))
    assert found[0] == found[1]
    assert len(found[0]) == finds


def test_a_deduplication_forgets_and_drops_what_is_late_in_planned_turns_too(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    def once(rows: DataFrame) -> DataFrame:
        return rows.withWatermark("ts", "5 seconds").dropDuplicates(["id", "ts"])

    source, kept, runs = spool(), Kept(), engine(policy="fifo")
    before = queries(spark)
    runs.submit(with_state(source, kept, once))
    moments = [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    in_turns(runs, source, [[reading(number, moment)] for number, moment in enumerate(moments)])
    assert queries(spark) == before
    # The first once more, long forgotten: late, and not new.
    in_turns(runs, source, [[reading(0, 0.0)], [reading(6, 60.0), reading(6, 60.0)]])
    assert sorted(row["id"] for row in kept.rows) == list(range(7))
    assert sum(report.late_rows for report in runs.stages()) == 1


@pytest.mark.parametrize("fails", ["write", "show"])
def test_a_planned_turn_that_fails_is_the_last_one_and_loses_nothing(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    engine: EngineFactory,
    spool: SpoolFactory,
    fails: str,
) -> None:
    source, out, before = spool(), spool("out"), queries(spark)

    def made() -> Pipeline:
        pipeline = Pipeline("p")
        rows = pipeline.source("readings", from_spool(source))
        windows = rows.window("w", on="ts", size="4s", late=1.0, by="sensor", aggregate=AGGREGATES)
        windows.sink("out", sinks.ToSpool(out))
        return pipeline

    runs = engine(policy="fifo")
    runs.submit(made())
    in_turns(runs, source, PARTS[:6])
    assert queries(spark) == before
    stage = runs._pipelines["p"].stages[0]
    assert isinstance(stage, held.HeldStage)

    def refuse(*given: object) -> None:
        # As if windows were found to be complete in the turn that fails.
        stage._flush_due = True
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(QueueEnd, fails, refuse)
        source.append(table(PARTS[6]))
        eventually(lambda: runs.pipelines["p"] == "failed")
        runs.stop()
    again = engine()
    again.submit(made(), resume=True)
    in_turns(again, source, PARTS[7:])
    assert window_rows(spool_rows(out)) == WINDOWS.expected(ROWS)


def test_a_function_sink_finds_the_views_it_makes_in_every_turn(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, before, found = spool(), queries(spark), []

    def count(rows: DataFrame, batch: int) -> None:
        rows.createOrReplaceTempView("latest")
        found.append(rows.sparkSession.sql("SELECT count(*) FROM latest").collect()[0][0])

    pipeline = Pipeline("p")
    rows = pipeline.source("readings", from_spool(source))
    unique = rows.operator("once", lambda frame: frame.dropDuplicates(["id"]), stateful=True)
    unique.sink("out", sinks.ForeachBatch(count))
    runs = engine(policy="fifo")
    runs.submit(pipeline)
    in_turns(runs, source, PARTS[:4])
    assert queries(spark) == before
    assert found == [20, 20, 20, 20]


def test_a_function_sink_that_reads_nothing_is_refused_in_that_very_turn(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, read = spool(), [True]

    def perhaps(rows: DataFrame, batch: int) -> None:
        if read[0]:
            rows.collect()

    pipeline = Pipeline("p")
    rows = pipeline.source("readings", from_spool(source))
    unique = rows.operator("once", lambda frame: frame.dropDuplicates(["id"]), stateful=True)
    unique.sink("out", sinks.ForeachBatch(perhaps))
    runs = engine(policy="fifo")
    runs.submit(pipeline)
    in_turns(runs, source, PARTS[:3])
    read[0] = False
    source.append(table(PARTS[3]))
    with pytest.raises(PenstockError, match="must be read to its end by one action, which keeps its state"):
        runs.drain(30)
