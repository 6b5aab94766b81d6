from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from tests.operators.privacy.people import Row, at, frame, from_spool, seen, table
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import Kept
from tests.spark.test_blame import failed

from penstock import Pipeline, Spool
from penstock.errors import PenstockError
from penstock.operators.privacy import Policy, PolicyTable, access_control
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HOUR = 3600.0
USE = {"consumer": "cafe", "purpose": "greeting"}


@pytest.fixture
def policies(tmp_path: Path) -> PolicyTable:
    return PolicyTable(tmp_path / "policies.jsonl", refresh=0)


def passed(spark: SparkSession, policies: PolicyTable, rows: list[Row], **use: Any) -> list[str | None]:
    kept = access_control(policies, **{**USE, **use})(frame(spark, rows))
    return [row["subject"] for row in kept.toArrow().to_pylist()]


def test_only_what_a_policy_names_is_allowed(spark: SparkSession, policies: PolicyTable) -> None:
    policies.write([Policy("ann", "cafe", ["greeting", "statistics"]), Policy("bob", "shop", ["greeting"])])
    rows = [seen("ann"), seen("bob"), seen("eve"), seen(None), seen("")]
    assert passed(spark, policies, rows) == ["ann"]
    assert passed(spark, policies, rows, purpose="statistics") == ["ann"]
    assert passed(spark, policies, rows, consumer="shop") == ["bob"]
    assert passed(spark, policies, rows, purpose="advertising") == []
    assert passed(spark, policies, rows, consumer="bank") == []
    policies.write([])
    assert passed(spark, policies, rows) == []


def test_another_spelling_of_a_subject_is_another_subject(spark: SparkSession, policies: PolicyTable) -> None:
    policies.write([Policy("ann", "cafe", ["greeting"])])
    variants = ["Ann", "ann ", " ann", "ann\n", "a\u0301nn", "*", "ann\x00greeting"]
    assert passed(spark, policies, [seen(each) for each in ("ann", *variants)]) == ["ann"]
    assert passed(spark, policies, [seen("ann")], consumer="cafe\x00greeting", purpose="x") == []


def test_a_wildcard_is_a_name_as_any_other(spark: SparkSession, policies: PolicyTable) -> None:
    policies.write([Policy("*", "cafe", ["greeting"]), Policy("ann", "cafe", ["*"])])
    assert passed(spark, policies, [seen("ann"), seen("bob")]) == []


def test_hours_are_those_of_the_rows_time_the_last_minute_is_no_part_of_them(
    spark: SparkSession, policies: PolicyTable
) -> None:
    policies.write([Policy("ann", "cafe", ["greeting"], "08:00", "12:30")])
    moments = [0, 8 * HOUR - 0.000001, 8 * HOUR, 12.5 * HOUR - 0.000001, 12.5 * HOUR, -2 * HOUR]
    rows = [seen("ann", seconds=each) for each in moments]
    kept = access_control(policies, **USE)(frame(spark, rows)).toArrow()["at"].to_pylist()
    assert sorted(kept) == [at(8 * HOUR), at(12.5 * HOUR - 0.000001)]


def test_hours_over_midnight_hold_on_both_sides_of_it(spark: SparkSession, policies: PolicyTable) -> None:
    policies.write([Policy("ann", "cafe", ["greeting"], "22:00", "02:00")])
    rows = [seen("ann", seconds=hour * HOUR) for hour in range(24)]
    kept = access_control(policies, **USE)(frame(spark, rows)).toArrow()["at"].to_pylist()
    assert sorted(each.hour for each in kept) == [0, 1, 22, 23]


def test_a_row_without_a_time_is_denied_where_there_are_hours(
    spark: SparkSession, policies: PolicyTable
) -> None:
    policies.write([Policy("ann", "cafe", "greeting", "00:00", "23:59"), Policy("bob", "cafe", "greeting")])
    rows = [seen("ann", seconds=None), seen("bob", seconds=None)]
    assert passed(spark, policies, rows) == ["bob"]
    assert passed(spark, policies, [seen("ann"), seen("bob")], at=None) == ["bob"]


def test_the_time_of_day_is_that_of_the_zone_in_summer_and_in_winter(
    spark: SparkSession, policies: PolicyTable
) -> None:
    policies.write([Policy("ann", "cafe", ["greeting"], "08:00", "09:00")])
    zone = ZoneInfo("Europe/Zurich")
    moments = [datetime(2026, month, 1, 8, 30, tzinfo=zone) for month in (1, 7)]
    others = [datetime(2026, month, 1, 8, 30, tzinfo=UTC) for month in (1, 7)]
    rows = [{**seen("ann"), "at": each} for each in (*moments, *others)]
    kept = access_control(policies, **USE, zone="Europe/Zurich")(frame(spark, rows))
    assert sorted(kept.toArrow()["at"].to_pylist()) == sorted(moments)
    with pytest.raises(PenstockError) as caught:
        access_control(policies, **USE, zone="Zurich")
    assert str(caught.value) == (
        "zone must be the name of a time zone (\"Europe/Zurich\"), got 'Zurich': "
        "it is not known what time of day it is there"
    )


def allows(policy: Policy, row: Row) -> bool:
    """By the definition, apart from names of consumer and purpose."""
    if policy.subject != row["subject"]:
        return False
    now = row["at"].strftime("%H:%M")
    begin, end = str(policy.from_time or "00:00"), str(policy.to_time or "24:00")
    return begin <= now < end if begin < end else (now >= begin or now < end)


@pytest.mark.parametrize("seed", range(2))
def test_random_policies_allow_what_their_definition_says(
    spark: SparkSession, policies: PolicyTable, seed: int
) -> None:
    chance = random.Random(seed)
    times = [None, *(f"{hour:02}:{minute:02}" for hour in range(24) for minute in (0, 7, 59))]
    chosen = []
    for number in range(60):
        begin, end = chance.choice(times), chance.choice(times)
        if (begin or "00:00") != end:
            chosen.append(Policy(f"s{number % 40}", "cafe", ["greeting"], begin, end))
    policies.write(chosen)
    rows = [seen(f"s{chance.randrange(45)}", seconds=chance.uniform(0, 86400)) for _ in range(2000)]
    expected = sorted(row["subject"] for row in rows if any(allows(policy, row) for policy in chosen))
    assert 100 < len(expected) < 1900
    assert sorted(map(str, passed(spark, policies, rows))) == expected


BROKEN = {
    "half a line": '{"subject": "ann", "consumer": "cafe", "purp',
    "a field misspelt": '{"subject": "ann", "consumer": "cafe", "purposes": ["greeting"], "form": "08:00"}',
    "a field twice": '{"subject": "bob", "subject": "ann", "consumer": "cafe", "purposes": ["greeting"]}',
    "no list": '{"subject": "ann", "consumer": "cafe", "purposes": "greeting"}',
    "no consumer": '{"subject": "ann", "purposes": ["greeting"]}',
    "no text": '{"subject": 7, "consumer": "cafe", "purposes": ["greeting"]}',
    "no time": '{"subject": "ann", "consumer": "cafe", "purposes": ["greeting"], "from": "24:00"}',
    "no interval": '{"subject": "ann", "consumer": "cafe", "purposes": ["greeting"], "to": "00:00"}',
    "two in a line": '{"subject": "a", "consumer": "b", "purposes": ["c"]} {}',
    "no object": '["ann", "cafe", "greeting"]',
    "no text at all": "\udcff\udcfe",
}


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN)
def test_a_table_with_a_broken_line_allows_nobody(
    spark: SparkSession, policies: PolicyTable, line: str
) -> None:
    policies.write([Policy("ann", "cafe", ["greeting"])])
    assert passed(spark, policies, [seen("ann")]) == ["ann"]
    with Path(policies.path).open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(line + "\n")
    with pytest.raises(Exception, match=r"must be readable, but .*: nobody is allowed"):
        passed(spark, policies, [seen("ann")])
    with pytest.raises(PenstockError, match="nobody is allowed"):
        policies.read()
    policies.write([Policy("ann", "cafe", ["greeting"])])
    assert passed(spark, policies, [seen("ann")]) == ["ann"]


def test_a_change_that_leaves_size_and_times_of_the_file_is_seen(
    spark: SparkSession, policies: PolicyTable
) -> None:
    policies.write([Policy("ann", "cafe", ["greeting"])])
    stamp = os.stat(policies.path)
    assert passed(spark, policies, [seen("ann"), seen("bob")]) == ["ann"]
    policies.write([Policy("bob", "cafe", ["greeting"])])
    os.utime(policies.path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert passed(spark, policies, [seen("ann"), seen("bob")]) == ["bob"]


def test_ten_thousand_subjects_are_loaded_in_half_a_second(
    spark: SparkSession, policies: PolicyTable
) -> None:
    hours = ("08:00", "18:00")
    policies.write(Policy(f"s{each}", "cafe", ["greeting", "statistics"], *hours) for each in range(10_000))
    seconds = []
    for _ in range(3):
        policies.allow(Policy(f"t{len(seconds)}", "cafe", "greeting"))
        begin = time.perf_counter()
        jvm(spark).penstock.PolicyFile.at(str(policies.path)).allowed(0).size()
        seconds.append(time.perf_counter() - begin)
    assert min(seconds) < 0.5
    assert (
        len(passed(spark, policies, [seen(f"s{each}", seconds=9 * HOUR) for each in range(11_000)])) == 10_000
    )


def declared(source: Spool, policies: PolicyTable, kept: Kept) -> Pipeline:
    pipeline = Pipeline("p")
    rows = pipeline.source("rows", from_spool(source))
    rows.operator("access", access_control(policies, **USE)).sink("out", kept.sink)
    return pipeline


def test_a_revocation_holds_in_every_turn_that_starts_later_than_the_refresh(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    policies = PolicyTable(tmp_path / "policies.jsonl", refresh="300ms")
    source, kept, runs = spool(), Kept(), engine()
    policies.write([Policy("ann", "cafe", "greeting"), Policy("bob", "cafe", "greeting")])
    runs.submit(declared(source, policies, kept))
    for _ in range(3):
        kept.turns.clear()
        policies.allow(Policy("ann", "cafe", "greeting"))
        time.sleep(policies.refresh_seconds)
        source.append(table([seen("ann"), seen("bob")]))
        runs.drain()
        assert kept.column("subject") == ["ann", "bob"]
        policies.revoke("ann", "cafe")
        time.sleep(policies.refresh_seconds)
        source.append(table([seen("ann"), seen("bob"), seen("ann")]))
        runs.drain()
        assert kept.column("subject") == ["ann", "bob", "bob"]


def test_without_its_table_a_pipeline_stops_and_lets_nothing_pass_until_it_is_back(
    engine: EngineFactory, spool: SpoolFactory, policies: PolicyTable
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    policies.write([Policy("ann", "cafe", "greeting")])
    runs.submit(declared(source, policies, kept))
    source.append(table([seen("ann")]))
    runs.drain()
    Path(policies.path).unlink()
    source.append(table([seen("ann"), seen("bob")]))
    error = failed(runs)
    assert "operator 'access' of pipeline 'p'" in str(error)
    assert f"the policy table {policies.path} must be readable" in str(error)
    assert kept.column("subject") == ["ann"]
    policies.write([Policy("bob", "cafe", "greeting")])
    runs.resume("p")
    runs.drain()
    assert kept.column("subject") == ["ann", "bob"]
