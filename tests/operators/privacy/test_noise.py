from __future__ import annotations

import random
import statistics
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.operators.privacy.people import Row, at, frame, from_spool, seen, table, written
from tests.spark.conftest import EngineFactory, SpoolFactory

from penstock import Pipeline, Spool, sinks
from penstock.errors import PenstockError
from penstock.operators.privacy import Budget, private_counts, private_means, private_sums
from penstock.operators.privacy.private_release import PrivateRelease
from penstock.operators.privacy.questions import Question, Sum

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PLACES = ("hall", "lab", "roof")
OPEN = 1e5
"""An epsilon that lets nearly everything through: what is left of the noise is told by ALMOST."""
ALMOST = 1e-2
SETTINGS: dict[str, Any] = {"product": "p", "on": "at", "size": "10s", "by": "place", "groups": PLACES}


@pytest.fixture
def generous(tmp_path: Path) -> Budget:
    return Budget(tmp_path / "generous", 1e6)


@pytest.fixture
def budget(tmp_path: Path) -> Budget:
    return Budget(tmp_path / "ledger", 1.0)


def counts(budget: Budget, **settings: Any) -> PrivateRelease:
    return private_counts(budget, **{**SETTINGS, "epsilon": OPEN, **settings})


def sums(budget: Budget, **settings: Any) -> PrivateRelease:
    return private_sums(budget, "value", **{**SETTINGS, "epsilon": OPEN, "bounds": (0.0, 10.0), **settings})


def means(budget: Budget, **settings: Any) -> PrivateRelease:
    return private_means(budget, "value", **{**SETTINGS, "epsilon": OPEN, "bounds": (0.0, 10.0), **settings})


def published(spark: SparkSession, private: PrivateRelease, rows: list[Row]) -> list[Row]:
    made: list[Row] = private.release(private.contributions(frame(spark, rows))).toArrow().to_pylist()
    return made


def values(spark: SparkSession, private: PrivateRelease, rows: list[Row]) -> dict[str, Any]:
    """By place, for rows of one window."""
    return {row["place"]: row["value"] for row in published(spark, private, rows)}


def test_counts_are_of_subjects_and_whole_in_every_group_that_was_named(
    spark: SparkSession, generous: Budget
) -> None:
    rows = [seen("ann"), seen("bob"), *[seen("eve", "lab")] * 5, seen("zoe", "cellar")]
    found = published(spark, counts(generous), rows)
    window = {"start": at(0), "end": at(10)}
    assert found == [
        {"window": window, "place": place, "value": value, "reason": None}
        for place, value in zip(PLACES, (2, 1, 0), strict=True)
    ]
    assert {type(row["value"]) for row in found} == {int}


def by_window(spark: SparkSession, private: PrivateRelease, cases: list[list[Row]]) -> list[list[Any]]:
    """The values of each case by place; each is a window of its own."""
    rows = [{**row, "at": at(10 * number)} for number, case in enumerate(cases) for row in case]
    found = [row["value"] for row in published(spark, private, rows)]
    return [found[start : start + len(PLACES)] for start in range(0, len(found), len(PLACES))]


def test_a_subject_counts_no_more_than_it_may(spark: SparkSession, generous: Budget) -> None:
    others = [seen(f"s{each}") for each in range(20)]
    many_rows = [seen("ann")] * 9
    places = [seen("ann"), seen("ann", "lab"), seen("ann", "lab")]
    all_places = [seen("ann", place) for place in ("hall", "hall", *PLACES)]
    spellings = [seen("ann"), seen("Ann"), seen(" ANN\t"), seen("ann ")]
    nobodies = [seen("ann"), seen(None), seen(""), seen(" ")]
    tricks = [[*others, *each] for each in (many_rows, places, all_places, spellings, nobodies)]
    assert by_window(spark, counts(generous), tricks) == [
        [21, 0, 0],
        [20, 1, 0],
        [21, 0, 0],
        [21, 0, 0],
        [21, 0, 0],
    ]
    assert by_window(spark, counts(generous, rows=4, groups_each=2), tricks) == [
        [24, 0, 0],
        [21, 2, 0],
        [23, 1, 0],
        [24, 0, 0],
        [21, 0, 0],
    ]


def test_one_value_moves_a_sum_by_its_bound_at_most(spark: SparkSession, generous: Budget) -> None:
    others = [seen(f"s{each}", value=2.5) for each in range(4)]
    moved = {1e300: 10, float("inf"): 10, 7.0: 7, -1e300: 0, float("-inf"): 0, float("nan"): 0, None: 0}
    cases = [[*others, seen("ann", value=huge)] for huge in moved]
    found = by_window(spark, sums(generous), cases)
    assert [each[0] for each in found] == pytest.approx([10 + by for by in moved.values()], abs=ALMOST)
    assert [value for each in found for value in each[1:]] == pytest.approx([0.0] * 14, abs=ALMOST)


def test_many_values_of_a_subject_count_as_few_of_their_mean(spark: SparkSession, generous: Budget) -> None:
    rows = [seen("ann", value=float(each)) for each in range(1, 6)]
    assert values(spark, sums(generous, rows=2), rows)["hall"] == pytest.approx(6.0, abs=ALMOST)
    assert values(spark, sums(generous, rows=7), rows)["hall"] == pytest.approx(15.0, abs=ALMOST)


def test_sums_with_bounds_below_zero_are_right_too(spark: SparkSession, generous: Budget) -> None:
    rows = [seen(f"s{each}", value=value) for each, value in enumerate((-99.0, -3.0, 1.0, 99.0))]
    found = values(spark, sums(generous, bounds=(-5.0, 2.0)), rows)
    assert found["hall"] == pytest.approx(-5 - 3 + 1 + 2, abs=ALMOST)


def test_means_are_those_of_the_cut_values(spark: SparkSession, generous: Budget) -> None:
    rows = [seen(f"s{each}", value=value) for each, value in enumerate((4.0, 6.0, 11.0))]
    found = values(spark, means(generous), [*rows, seen("ann", "lab", value=-7.0)])
    assert found["hall"] == pytest.approx(20 / 3, abs=ALMOST)
    assert found["lab"] == pytest.approx(0.0, abs=ALMOST)
    assert 0.0 <= found["roof"] <= 10.0


def test_random_rows_give_the_sums_of_a_plain_computation(spark: SparkSession, generous: Budget) -> None:
    chance = random.Random(1)
    rows = [
        seen(f"s{chance.randrange(30)}", chance.choice(PLACES), chance.uniform(0, 30), chance.uniform(-5, 15))
        for _ in range(500)
    ]
    given: dict[tuple[int, str], dict[str, list[float]]] = {}
    for row in rows:
        start = (row["at"] - at(0)).total_seconds() // 10 * 10
        of_subject = given.setdefault((int(start), row["subject"]), {})
        of_subject.setdefault(row["place"], []).append(min(max(row["value"], 0.0), 10.0))
    expected: Counter[tuple[int, str]] = Counter()
    for (start, _), places in given.items():
        order = sorted(places, key=lambda place: (-len(places[place]), place))
        for place in order[:2]:
            found = places[place]
            expected[start, place] += statistics.fmean(found) * min(len(found), 3)  # type: ignore[assignment]
    private = sums(generous, rows=3, groups_each=2)
    got = {
        (int((row["window"]["start"] - at(0)).total_seconds()), row["place"]): row["value"]
        for row in published(spark, private, rows)
    }
    assert got.keys() == {(start, place) for start in (0, 10, 20) for place in PLACES}
    assert all(got[key] == pytest.approx(expected[key], abs=0.05) for key in got)


@pytest.mark.parametrize(
    ("question", "scale"),
    [
        (Question("count", "p", 0.5, "place", PLACES, 10.0, 2, 3), 12.0),
        (Question("count", "p", 0.5, "place", PLACES, 10.0, 2, 9), 12.0),
        (Question("sum", "p", 0.5, "place", PLACES, 10.0, 2, 1, bounds=(-8.0, 4.0)), 32.0),
    ],
    ids=["count", "more groups than there are", "sum"],
)
def test_the_noise_hides_all_that_one_subject_may_give(question: Question, scale: float) -> None:
    drawn = [abs(value or 0) for _ in range(700) for value in question.noised({})]
    assert statistics.fmean(drawn) == pytest.approx(scale, rel=0.1)


def test_the_noise_of_a_mean_is_that_of_half_the_budget_for_half_the_range() -> None:
    question = Question("mean", "p", 1.0, None, ("all",), 10.0, 1, 1, bounds=(0.0, 100.0))
    crowd = {"all": Sum(rows=100_000)}
    drawn = [abs((question.noised(crowd)[0] or 0) - 50.0) for _ in range(2000)]
    assert statistics.fmean(drawn) == pytest.approx(50.0 / 0.5 / 100_000, rel=0.1)


def test_a_release_that_runs_again_gives_the_very_same_values_and_costs_nothing(
    spark: SparkSession, budget: Budget
) -> None:
    private = counts(budget, epsilon=0.1)
    rows = [seen(f"s{each}", seconds=second) for each in range(5) for second in (0, 10)]
    first = published(spark, private, rows)
    assert published(spark, counts(budget, epsilon=0.1), rows) == first
    assert budget.spent("p", "s1") == 0.2
    assert first[0]["window"] != first[3]["window"]


def test_numbers_written_in_another_way_are_the_same_release(budget: Budget) -> None:
    one, other = sums(budget, bounds=(0, 10), epsilon=1), sums(budget, epsilon=1.0)
    assert one.question.release(0) == other.question.release(0)


def test_releases_that_differ_in_anything_share_no_noise(spark: SparkSession, budget: Budget) -> None:
    rows = [seen("ann", seconds=second) for second in (0, 10)]
    differing = [
        counts(budget, epsilon=0.001),
        counts(budget, epsilon=0.001, product="q"),
        counts(budget, epsilon=0.001, rows=2),
        counts(budget, epsilon=0.001, size="5s"),
        counts(budget, epsilon=0.001, groups=("hall", "lab", "cellar")),
    ]
    drawn = [row["value"] for each in differing for row in published(spark, each, rows)]
    assert len(drawn) == 30
    # At a scale of 1,000 and more, equal values would be a rare chance.
    assert len(set(drawn)) > 25
    assert budget.spent("p", "ann") == 0.008
    assert budget.spent("q", "ann") == 0.002


def test_who_cannot_pay_any_more_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    budget = Budget(tmp_path / "ledger", 2 * OPEN)
    rows = [
        seen("ann"),
        seen("bob"),
        seen("bob", seconds=10),
        seen("ann", seconds=20),
        seen("bob", seconds=20),
    ]
    private = counts(budget)
    assert [row["value"] for row in published(spark, private, rows)] == [2, 0, 0, 1, 0, 0, 1, 0, 0]


def test_a_release_that_nobody_can_pay_is_refused_and_says_why(spark: SparkSession, tmp_path: Path) -> None:
    budget = Budget(tmp_path / "ledger", OPEN)
    private = counts(budget)
    published(spark, private, [seen("ann")])
    found = published(spark, private, [seen("ann", seconds=10)])
    assert [(row["value"], row["reason"]) for row in found] == [(None, "budget exhausted")] * 3
    noise = published(spark, counts(budget, refuse=False), [seen("ann", seconds=10)])
    assert [(row["value"], row["reason"]) for row in noise] == [(0, None)] * 3


def test_a_window_without_subjects_is_released_as_any_other(spark: SparkSession, budget: Budget) -> None:
    found = published(spark, counts(budget, epsilon=0.01), [seen(None, None)])
    assert [row["place"] for row in found] == list(PLACES)
    assert all(isinstance(row["value"], int) and row["reason"] is None for row in found)


def test_nothing_but_values_is_published(spark: SparkSession, budget: Budget) -> None:
    private = sums(budget, epsilon=0.1, by=None, groups=())
    [row] = published(spark, private, [seen("ann"), seen("bob", "lab")])
    assert list(row) == ["window", "value", "reason"]
    assert private.schema == "window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, value DOUBLE, reason STRING"


def test_a_window_that_comes_twice_in_a_turn_is_refused(spark: SparkSession, budget: Budget) -> None:
    private = counts(budget, epsilon=0.1)
    part = private.contributions(frame(spark, [seen("ann")]))
    with pytest.raises(PenstockError) as caught:
        private.release(part.union(part))
    assert str(caught.value) == (
        "a window must come once, with all its contributions, got one twice: "
        "its subjects could count twice, so nothing is released"
    )
    assert budget.spent("p", "ann") == 0.0


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"groups": ()},
            "groups must be different texts, one or more, got (): they are known beforehand, "
            "as a group that is there only with somebody in it would tell so",
        ),
        (
            {"by": None},
            "by must be a column of groups that is not called window, value or reason, got None: "
            "the groups could not be told apart",
        ),
        (
            {"by": "value"},
            "by must be a column of groups that is not called window, value or reason, got 'value': "
            "the groups could not be told apart",
        ),
        ({"rows": 0}, "rows must be 1 or more, got 0: no subject would count"),
        ({"groups_each": 0}, "groups_each must be 1 or more, got 0: no subject would count"),
        (
            {"bounds": (0.0, float("inf"))},
            "bounds must be two finite numbers, the lower one first, got (0.0, inf): "
            "no noise could hide a value without bounds",
        ),
        (
            {"epsilon": 0},
            "the epsilon of the product 'p' must be an epsilon from 1e-09 to 1e+06, got 0: "
            "it is no promise that noise could keep",
        ),
    ],
)
def test_settings_that_hide_nobody_are_refused(budget: Budget, settings: Any, text: str) -> None:
    with pytest.raises(PenstockError) as caught:
        sums(budget, **settings)
    assert str(caught.value) == text


def declared(source: Spool, folder: Path, private: PrivateRelease) -> Pipeline:
    pipeline = Pipeline("p")
    private.add_to(pipeline.source("rows", from_spool(source)), "counts").sink("out", sinks.Parquet(folder))
    return pipeline


def test_windows_are_released_by_an_engine_once_each_and_over_a_restart(
    engine: EngineFactory, spool: SpoolFactory, tmp_path: Path
) -> None:
    source, folder = spool(), tmp_path / "out"
    private = counts(Budget(tmp_path / "ledger", 2 * OPEN))
    rows = [seen(name, seconds=second) for second in range(45) for name in ("ann", "bob") if second != 15]
    rows.append(seen("eve", "roof", 25.5))
    rows.sort(key=lambda row: row["at"])
    for part in (rows[:35], rows[35:]):
        runs = engine(consumption="at-most-10")
        runs.submit(declared(source, folder, private))
        for each in range(0, len(part), 8):
            source.append(table(part[each : each + 8]))
        runs.drain()
        kinds = {report.stage: report.kind for report in runs.stages()}
        runs.stop()
    assert kinds == {"p.counts_contributions": "held", "p.counts": "direct"}
    found = sorted((row["window"]["start"], row["place"], row["value"]) for row in written(folder))
    # Both can pay for two windows, eve for the third, and nobody is left for the fourth.
    expected = {0: (2, 0, 0), 10: (2, 0, 0), 20: (0, 0, 1), 30: (None, None, None)}
    assert found == [
        (at(start), place, value)
        for start, each in expected.items()
        for place, value in zip(PLACES, each, strict=True)
    ]
