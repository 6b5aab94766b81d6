from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from penstock.spark.jvm import analysed_plan
from penstock.spark.plans import driven_by_us, parse_plan, read_plan, stateful_nodes
from penstock.spark.stage_line import EventTime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"


def node(kind: str, children: int, **fields: Any) -> dict[str, Any]:
    return {"class": f"{LOGICAL}.{kind}", "num-children": children, **fields}


def test_a_plan_is_read_from_nodes_in_pre_order() -> None:
    text = json.dumps(
        [
            node("Join", 2),
            node("Aggregate", 1),
            node("StreamingRelationV2", 0, sourceName="rate"),
            node("Deduplicate", 1),
            node("LocalRelation", 0),
        ]
    )
    root = parse_plan(text)
    assert (root.kind, [child.kind for child in root.children]) == ("Join", ["Aggregate", "Deduplicate"])
    assert root.children[0].children[0].fields["sourceName"] == "rate"
    assert root.children[1].children[0].children == ()
    # The deduplication is over a table at rest, and so is one side of the join.
    assert stateful_nodes(root) == ["Aggregate"]


def test_a_node_that_is_not_known_to_keep_nothing_is_taken_to_keep_state() -> None:
    text = json.dumps(
        [node("Filter", 1), node("SomethingNew", 1), node("Project", 1), node("StreamingRelation", 0)]
    )
    assert stateful_nodes(parse_plan(text)) == ["SomethingNew"]


@pytest.fixture
def rate(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", 7).load()


@pytest.mark.spark
def test_a_filter_and_a_projection_keep_no_state(rate: DataFrame) -> None:
    plan = read_plan(rate.filter("value > 3").selectExpr("value * 2 as v").union(rate.select("value")))
    assert (plan.stateful, plan.is_stateful, plan.sources) == ((), False, ("rate", "rate"))
    assert read_plan(rate.select("value")).rate_rows_per_second == 7


@pytest.mark.spark
def test_an_aggregation_keeps_state_and_has_the_watermark_of_its_column(rate: DataFrame) -> None:
    from pyspark.sql import functions as F

    counts = rate.withWatermark("timestamp", "250 milliseconds").groupBy(F.window("timestamp", "1 second"))
    plan = read_plan(counts.count())
    assert plan.stateful == ("Aggregate",)
    assert plan.event_time == EventTime("timestamp", 0.25, 1.0, 1.0)


@pytest.mark.spark
def test_window_and_slide_are_read_from_the_plan(rate: DataFrame) -> None:
    from pyspark.sql import functions as F

    timed = rate.withWatermark("timestamp", "0 seconds")

    def event_time(*window: str) -> EventTime | None:
        return read_plan(timed.groupBy(F.window("timestamp", *window), "value").count()).event_time

    assert event_time("10 minutes") == EventTime("timestamp", 0.0, 600.0, 600.0)
    assert event_time("10 seconds", "2 seconds") == EventTime("timestamp", 0.0, 10.0, 2.0)
    assert event_time("5 seconds", "5 seconds", "1 second") == EventTime("timestamp", 0.0, 5.0, 5.0, 1.0)
    session = timed.groupBy(F.session_window("timestamp", "10 seconds")).count()
    assert read_plan(session).event_time == EventTime("timestamp", 0.0, None, None)
    assert read_plan(timed.dropDuplicates(["timestamp"])).event_time == EventTime("timestamp", 0.0)
    assert read_plan(timed.dropDuplicatesWithinWatermark(["value"])).event_time is None


@pytest.mark.spark
def test_of_windows_over_windows_the_last_ones_count(rate: DataFrame) -> None:
    from pyspark.sql import functions as F

    timed = rate.withWatermark("timestamp", "0 seconds")
    first = timed.groupBy(F.window("timestamp", "1 second"), "value").count()
    plan = read_plan(first.groupBy(F.window(F.window_time("window"), "5 seconds")).sum("count"))
    assert plan.stateful == ("Aggregate", "Aggregate")
    assert plan.event_time == EventTime("timestamp", 0.0, 5.0, 5.0)
    assert plan.copies == 1
    sliding = timed.groupBy(F.window("timestamp", "10 seconds", "1 second"), "value").count()
    assert read_plan(sliding.groupBy(F.window(F.window_time("window"), "5 seconds")).count()).copies == 10
    # A join holds the watermark back: Spark's own stays.
    other = rate.selectExpr("value as other", "timestamp as at")
    both = timed.join(other, F.expr("value = other"))
    joined = both.groupBy(F.window("timestamp", "1 second")).count()
    assert read_plan(joined, driven=True).event_time is None


@pytest.mark.spark
@pytest.mark.parametrize(
    ("on", "kind", "known"),
    [
        ("window = other_window", "inner", True),
        ("value = other", "inner", False),
        ("window = window and value = other", "inner", False),
        ("value = other and window = other_window", "left", False),
        ("value = other and at <= timestamp + interval 1 second", "inner", False),
    ],
)
def test_rows_joined_within_windows_follow_one_watermark(
    rate: DataFrame, on: str, kind: str, known: bool
) -> None:
    from pyspark.sql import functions as F

    timed = rate.withWatermark("timestamp", "0 seconds")
    timed = timed.withColumn("window", F.window("timestamp", "2 seconds"))
    others = timed.selectExpr("window as other_window", "value as other", "timestamp as at")
    pairs = timed.join(others, F.expr(on), kind)
    joined = pairs.groupBy(F.window(F.window_time("window"), "2 seconds")).count()
    expected = EventTime("timestamp", 0.0, 2.0, 2.0) if known else None
    assert read_plan(joined, driven=True).event_time == expected
    # Pairs themselves leave before their window is complete.
    assert read_plan(pairs, driven=True).event_time is None
    # By its rows alone nobody knows before they are read; and one of two queues may be empty.
    assert read_plan(joined).event_time is None
    assert read_plan(joined, driven=True, queues=2).event_time is None


@pytest.mark.spark
def test_a_stage_of_one_slot_does_not_shuffle(rate: DataFrame) -> None:
    from pyspark.sql import functions as F

    timed = rate.coalesce(1).withWatermark("timestamp", "0 seconds")
    counts = timed.groupBy(F.window("timestamp", "1 second")).count()
    plans = {slots: analysed_plan(driven_by_us(counts, slots)).toString() for slots in (1, 2)}
    # One, and that behind the watermark.
    assert plans[1].count("Repartition 1, false") == 1
    assert plans[1].index("Repartition 1, false") < plans[1].index("EventTimeWatermark")
    assert plans[2].index("Repartition 1, false") > plans[2].index("EventTimeWatermark")


@pytest.mark.spark
def test_the_watermark_is_nobodys_to_set_behind_a_filter_or_on_a_computed_column(rate: DataFrame) -> None:
    from pyspark.sql import functions as F

    some = rate.filter("value > 3").withWatermark("timestamp", "1 second")
    later = rate.selectExpr("timestamp + INTERVAL 1 HOUR as t").withWatermark("t", "1 second")
    assert read_plan(some.groupBy(F.window("timestamp", "1 second")).count()).event_time is None
    assert read_plan(later.groupBy(F.window("t", "1 second")).count()).event_time is None
    # Unless it is set by what is known of the sources, not of the rows.
    some = some.groupBy(F.window("timestamp", "1 second")).count()
    assert read_plan(some, driven=True).event_time == EventTime("timestamp", 1.0, 1.0, 1.0)
    assert read_plan(later.groupBy(F.window("t", "1 second")).count(), driven=True).event_time is None


@pytest.mark.spark
def test_deduplication_keeps_state(rate: DataFrame) -> None:
    assert read_plan(rate.dropDuplicates(["value"])).stateful == ("Deduplicate",)
    timed = rate.withWatermark("timestamp", "1 second")
    assert read_plan(timed.dropDuplicatesWithinWatermark(["value"])).is_stateful
    assert read_plan(rate.select("value").distinct()).is_stateful


@pytest.mark.spark
def test_a_limit_keeps_state(rate: DataFrame) -> None:
    assert read_plan(rate.limit(5)).is_stateful


@pytest.mark.spark
def test_a_join_keeps_state_between_two_streams_only(spark: SparkSession, rate: DataFrame) -> None:
    names = spark.createDataFrame([(1, "one")], "value BIGINT, name STRING")
    assert read_plan(rate.join(names, "value")).stateful == ()
    assert read_plan(rate.join(names.groupBy("value").count(), "value")).stateful == ()
    other = spark.readStream.format("rate").load().selectExpr("value", "timestamp as t")
    plan = read_plan(
        rate.withWatermark("timestamp", "1 second").join(other.withWatermark("t", "1 second"), "value")
    )
    assert plan.stateful == ("Join",)
    assert plan.event_time is None
