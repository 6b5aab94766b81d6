from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.operators.privacy.people import BEGIN, Row, at, frame, from_spool, seen, table, written
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import Kept

from penstock import Pipeline, Spool, sinks
from penstock.errors import PenstockError
from penstock.operators.privacy import k_anonymous

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SETTINGS: dict[str, Any] = {
    "on": "at",
    "size": "10s",
    "by": "place",
    "aggregate": ("count(*) as n", "sum(value) as total"),
}
Found = tuple[int, Any, Any, Any, Any, Any]


def shown(rows: Iterable[Row]) -> list[Found]:
    """(start in seconds, place, n, total, subjects, suppressed) of the rows that leave."""
    names = ("place", "n", "total", "subjects", "suppressed")
    found = [
        (int((row["window"]["start"] - BEGIN).total_seconds()), *(row[name] for name in names))
        for row in rows
    ]
    return sorted(found, key=str)  # type: ignore[arg-type]


def expected(rows: Iterable[Row], k: int, until: float = 1e9) -> list[Found]:
    """The same by the definition, for windows that end by then."""
    groups: dict[tuple[int, Any], list[Row]] = defaultdict(list)
    for row in rows:
        second = (row["at"] - BEGIN).total_seconds()
        groups[int(second // 10 * 10), row["place"]].append(row)
    found: list[Found] = []
    suppressed: dict[int, int] = defaultdict(int)
    for (start, place), members in groups.items():
        if start + 10 > until:
            continue
        subjects = {(row["subject"] or "").strip().lower() for row in members} - {""}
        if len(subjects) >= k:
            total = sum(row["value"] for row in members)
            found.append((start, place, len(members), total, len(subjects), None))
        else:
            suppressed[start] += 1
    found += [(start, None, None, None, None, count) for start, count in suppressed.items()]
    return sorted(found, key=str)


def crowd(count: int, seconds: float, seed: int = 1) -> list[Row]:
    """Rows in order of time: a few subjects, written in several ways, at places some of which are rare."""
    chance = random.Random(seed)
    names = [f"s{each}" for each in range(7)] + ["S1", " s2", "s3\t", None, "", "  "]
    places = ["hall"] * 9 + ["lab"] * 3 + ["roof", "cellar", None]
    return [
        seen(chance.choice(names), chance.choice(places), each * seconds / count, float(chance.randrange(9)))
        for each in range(count)
    ]


def anonymised(spark: SparkSession, rows: list[Row], k: int = 3, **settings: Any) -> list[Row]:
    made: list[Row] = k_anonymous(k, **{**SETTINGS, **settings})(frame(spark, rows)).toArrow().to_pylist()
    return made


@pytest.mark.parametrize(("seed", "k"), [(1, 2), (2, 3), (3, 5)])
def test_groups_of_k_subjects_leave_and_the_others_are_counted(
    spark: SparkSession, seed: int, k: int
) -> None:
    rows = crowd(400, 60, seed)
    found = shown(anonymised(spark, rows, k))
    assert found == expected(rows, k)
    assert {row[5] is None for row in found} == {True, False}


@pytest.mark.parametrize(
    "trick",
    [
        [seen("ann")] * 50,
        [seen("ann"), seen("Ann"), seen("ANN "), seen("\tann"), seen("\u00a0ann")],
        [seen("ann"), seen("bob"), *[seen(None)] * 5, seen(""), seen("   "), seen("\n")],
        [seen("ann"), seen("bob"), seen("eve", "roof"), seen("bob", "roof")],
        [seen("ann"), seen("bob"), seen("eve", seconds=10)],
    ],
    ids=["many rows of one", "spellings of one", "nobodies", "over two places", "over two windows"],
)
def test_fewer_than_k_subjects_are_never_shown(spark: SparkSession, trick: list[Row]) -> None:
    found = anonymised(spark, trick)
    assert [row["suppressed"] is None for row in found] == [False] * len(found)
    hidden = ("place", "n", "total", "subjects")
    assert {row[name] for row in found for name in hidden} == {None}


def test_what_is_suppressed_leaves_one_row_with_nothing_but_their_number(spark: SparkSession) -> None:
    big = [seen(f"s{each}") for each in range(3)]
    few = [seen("ann", "roof", value=99.0), seen("bob", "lab"), seen("eve", None)]
    found = anonymised(spark, [*big, *few])
    window = {"start": at(0), "end": at(10)}
    nothing = {"place": None, "n": None, "total": None, "subjects": None}
    assert [row for row in found if row["suppressed"]] == [{"window": window, **nothing, "suppressed": 3}]
    kept = {"window": window, "place": "hall", "n": 3, "total": 3.0, "subjects": 3, "suppressed": None}
    assert [row for row in found if not row["suppressed"]] == [kept]


def test_a_key_that_is_null_is_a_group_as_any_other_and_is_told_from_the_suppressed(
    spark: SparkSession,
) -> None:
    found = anonymised(spark, [*(seen(f"s{each}", None) for each in range(3)), seen("ann", "roof")])
    assert sorted((str(row["subjects"]), str(row["suppressed"])) for row in found) == [
        ("3", "None"),
        ("None", "1"),
    ]


def test_without_aggregates_and_with_several_keys_it_counts_subjects(spark: SparkSession) -> None:
    rows = [
        seen(name, place, value=value) for name in "abc" for place in ("hall", "lab") for value in (1.0, 2.0)
    ]
    found = anonymised(spark, rows[:-1], by=["place", "value"], aggregate=())
    assert sorted((str(row["place"]), str(row["value"]), str(row["subjects"])) for row in found) == [
        ("None", "None", "None"),
        ("hall", "1.0", "3"),
        ("hall", "2.0", "3"),
        ("lab", "1.0", "3"),
    ]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"k": 1}, "k must be 2 or more, got 1: a single subject would be shown"),
        (
            {"by": ["place", "suppressed"]},
            "by must not contain 'suppressed', got it: that is a column of the result of its own",
        ),
        ({"size": 0}, "window size must be positive, got 0 ms: no row could fall into it"),
    ],
)
def test_settings_that_promise_nothing_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(PenstockError) as caught:
        k_anonymous(**{"k": 3, **SETTINGS, **settings})
    assert str(caught.value) == text


def declared(source: Spool, sink: Any, k: int = 3, late: str = "0s") -> Pipeline:
    pipeline = Pipeline("p")
    rows = pipeline.source("rows", from_spool(source))
    made = rows.operator("anon", k_anonymous(k, **SETTINGS, late=late), stateful=True, watermark="at")
    made.sink("out", sink)
    return pipeline


def test_a_window_leaves_the_engine_whole_with_the_turn_that_completes_it(
    engine: EngineFactory, spool: SpoolFactory
) -> None:
    source, kept, runs = spool(), Kept(), engine()
    runs.submit(declared(source, kept.sink))
    source.append(table([seen("ann", seconds=1), seen("bob", seconds=9), seen("ann", "roof", 9.9)]))
    runs.drain()
    assert kept.rows == []
    source.append(table([seen("eve", seconds=2)]))
    runs.drain()
    assert kept.rows == []
    source.append(table([seen("ann", seconds=10)]))
    runs.drain()
    assert shown(kept.rows) == [(0, "hall", 3, 3.0, 3, None), (0, None, None, None, None, 1)]
    assert len([turn for turn in kept.turns if turn]) == 1
    assert [report.kind for report in runs.stages()] == ["held"]


def test_windows_stay_exact_over_restarts_and_however_turns_are_cut(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, folder = spool(), tmp_path / "out"
    rows = crowd(300, 60)
    for start in range(0, 300, 100):
        runs = engine(consumption="at-most-40")
        runs.submit(declared(source, sinks.Parquet(folder)))
        for each in range(start, start + 100, 25):
            source.append(table(rows[each : each + 25]))
        runs.drain()
        runs.stop()
    assert shown(written(folder)) == expected(rows, 3, until=59.8)
