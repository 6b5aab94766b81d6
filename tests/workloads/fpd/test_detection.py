"""Patterns are those of the window at every moment of rest, however its rows are cut."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.conftest import EngineFactory, SpoolFactory
from tests.spark.streams import Kept

from penstock import sources
from penstock.errors import PenstockError
from penstock.operators.text import candidate_patterns, detect_patterns
from penstock.stages import cut
from penstock.workloads.fpd import ARROW, SCHEMA, STAGES, Tweets, Window, fpd, maximal_patterns, told_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FREQUENT_AT = 4
texts = st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=12)


def in_pieces(table: pa.Table, seed: int, most: int) -> list[pa.Table]:
    chance, place, found = random.Random(seed), 0, []
    while place < len(table):
        size = chance.randint(1, most)
        found.append(table.slice(place, size))
        place += size
    return found


@given(texts, st.integers(1, 4))
def test_the_plain_computation_is_by_definition(window: list[set[str]], frequent_at: int) -> None:
    """Every set of five words, looked at one by one."""

    def often(words: set[str]) -> bool:
        return sum(words <= text for text in window) >= frequent_at

    sets = [set(chosen) for size in range(1, 6) for chosen in combinations("abcde", size)]
    wanted = {
        " ".join(sorted(one))
        for one in sets
        if often(one) and not any(one < two and often(two) for two in sets)
    }
    assert maximal_patterns(window, frequent_at) == wanted


def test_reports_may_come_in_any_order_but_not_twice() -> None:
    rows = [{"pattern": "a", "maximal": change} for change in (-1, 1, 1)]
    assert told_patterns([*rows, {"pattern": "b", "maximal": 1}, {"pattern": "b", "maximal": -1}]) == {"a"}
    with pytest.raises(ValueError, match=r"got \{'a': 2\}"):
        told_patterns([{"pattern": "a", "maximal": 1}] * 2)


@settings(max_examples=20)
@given(st.integers(0, 99), st.integers(1, 30))
def test_a_window_holds_the_last_tweets(seed: int, size: int) -> None:
    window, tweets = Window(size), list(Tweets(seed=seed, vocabulary=50).arrivals(0.5, 100.0))
    place, seen = 0, {1: 0, -1: 0}
    while place < len(tweets):
        entering, leaving = window.slide(tweets[place : place + 7])
        for rows, sign in ((entering, 1), (leaving, -1)):
            assert rows["sign"].to_pylist() == [sign] * len(rows)
            expected = [list(each.words) for each in tweets[seen[sign] : seen[sign] + len(rows)]]
            assert rows["words"].to_pylist() == expected
            seen[sign] += len(rows)
        place += 7
        assert [each.number for each in window.tweets] == list(range(len(tweets)))[:place][-size:]


def test_words_are_zipfian_and_arrivals_poisson() -> None:
    tweets = list(Tweets(vocabulary=1000).arrivals(60.0))
    assert len(tweets) == pytest.approx(320 * 60, rel=0.03)
    uses = [word for tweet in tweets for word in tweet.words]
    assert uses.count("w0") / uses.count("w9") == pytest.approx(10.0, rel=0.25)
    assert {len(tweet.words) for tweet in tweets} == {1, 2, 3, 4, 5}
    gaps = [b.due_seconds - a.due_seconds for a, b in pairwise(tweets)]
    mean = sum(gaps) / len(gaps)
    spread = sum((gap - mean) ** 2 for gap in gaps) / len(gaps) / mean**2
    assert spread == pytest.approx(1.0, rel=0.1)
    assert tweets[:50] == list(Tweets(vocabulary=1000).arrivals(60.0))[:50]
    with pytest.raises(PenstockError, match="got 0: it would be empty"):
        Window(0)


@pytest.mark.spark
def test_candidates_are_all_sets_of_the_first_words(spark: SparkSession) -> None:
    rows = [
        {"tweet": 1, "sign": 1, "words": ["c", "a", "b", "a"]},
        {"tweet": 2, "sign": -1, "words": ["d", "b", "c", "a"]},
        {"tweet": 3, "sign": 1, "words": [None, ""]},
        {"tweet": 4, "sign": 1, "words": []},
    ]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=ARROW))
    found = [(row.pattern, row.occurrences) for row in candidate_patterns(3)(frame).collect()]
    sets = [" ".join(chosen) for size in (1, 2, 3) for chosen in combinations("abc", size)]
    assert sorted(found) == sorted((one, sign) for one in sets for sign in (1, -1))
    with pytest.raises(PenstockError) as error:
        candidate_patterns(16)
    assert str(error.value) == "texts must have from 1 to 15 words, got 16: of n words there are 2^n - 1 sets"
    with pytest.raises(PenstockError) as never:
        detect_patterns(0)
    assert str(never.value) == (
        "patterns must occur once or more to be frequent, got 0: every set of words would be"
    )


@dataclass
class Case:
    """Tweets with words of their own, and the window they slide through: many cases share one run."""

    name: str
    seed: int

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        self.window = Window(chance.randint(3, 40))
        vocabulary = Tweets(seed=self.seed, vocabulary=chance.randint(3, 9))
        self.tweets = [
            replace(each, words=tuple(f"{self.name}-{word}" for word in each.words))
            for each in vocabulary.arrivals(0.3)
        ]
        self.chance = chance

    def slide(self) -> tuple[pa.Table, pa.Table]:
        count = self.chance.randint(0, 30)
        comes, self.tweets = self.tweets[:count], self.tweets[count:]
        return self.window.slide(comes)

    def expected(self) -> set[str]:
        return maximal_patterns([each.words for each in self.window.tweets], FREQUENT_AT)


@pytest.mark.spark
@pytest.mark.slow
def test_the_detector_ends_with_the_patterns_of_every_window(
    spark: SparkSession, engine: EngineFactory, spool: SpoolFactory
) -> None:
    entering, leaving, kept = spool("entering"), spool("leaving"), Kept()
    runs = engine(policy="fifo")
    given = [sources.FromSpool(each, SCHEMA) for each in (entering, leaving)]
    runs.submit(fpd(*given, kept.sink, frequent_at=FREQUENT_AT, slots={"detect": 2}))
    cases, sizes = [Case(f"case{seed}", seed) for seed in range(20)], set()
    for number in range(4):
        comes, goes = (pa.concat_tables(each) for each in zip(*[c.slide() for c in cases], strict=True))
        # What leaves may be told before what enters: the detector only adds up.
        for place, rows in ((leaving, goes), (entering, comes)):
            for piece in in_pieces(rows, seed=number, most=150):
                place.append(piece)
        runs.drain(120)
        expected = set().union(*(case.expected() for case in cases))
        assert told_patterns(kept.rows) == expected, f"in round {number}"
        sizes |= {len(pattern.split()) for pattern in expected}
    assert {1, 2, 3} <= sizes, "patterns of several sizes were maximal"
    assert any(row["maximal"] < 0 for row in kept.rows)


def test_it_has_three_stages_of_which_the_second_feeds_itself(tmp_path: Path) -> None:
    source = sources.Files(tmp_path, schema=SCHEMA)
    graph = cut(fpd(source, source, Kept().sink, frequent_at=3, slots={"detect": 13}))
    own = [stage for stage in graph.stages if stage.operators]
    assert [stage.operators[-1].name for stage in own] == list(STAGES)
    detect = graph.stage("fpd.detect")
    assert detect.parallelism == 13
    assert detect in graph.below(detect)
    assert {each.name for each in graph.below(detect)} == {"fpd.detect", "fpd.report"}
