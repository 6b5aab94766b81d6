"""What is sent, when, and how it is told again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Spool
from penstock.errors import PenstockError
from penstock.spark.feeders import wait_for
from penstock.workloads.wordcount import Ramp, RampFeeder, Sentences, Tally


def test_a_sentence_is_the_same_whenever_it_is_drawn() -> None:
    sentences = Sentences(seed=3)
    whole = sentences.table(0, 100)
    assert sentences.table(40, 20) == whole.slice(40, 20)
    assert Sentences(seed=4).table(0, 100) != whole
    assert whole["number"].to_pylist() == list(range(100))


def test_counts_are_those_of_the_sentences() -> None:
    sentences = Sentences(words=20, least=2, most=6)
    texts = sentences.table(0, 300)["sentence"].to_pylist()
    assert sentences.counts(300) == Counter(word for text in texts for word in text.split(" "))
    lengths = Counter(len(text.split(" ")) for text in texts)
    assert set(lengths) == {2, 3, 4, 5, 6}
    assert len(sentences.counts(300)) == 20


def test_words_are_about_equally_often() -> None:
    counts = Sentences(words=50).counts(5_000)
    mean = sum(counts.values()) / 50
    assert all(0.85 * mean < times < 1.15 * mean for times in counts.values())


def test_a_ramp_goes_up_and_down_between_the_rates_of_the_paper() -> None:
    ramp = Ramp(seconds=600.0)
    assert [ramp.rate(at) for at in (0.0, 150.0, 300.0, 450.0, 600.0)] == [5.0, 277.5, 550.0, 277.5, 5.0]


@given(st.floats(0.0, 50.0), st.floats(0.0, 500.0), st.floats(1.0, 1000.0))
def test_what_has_come_is_the_sum_of_the_rates(low: float, more: float, seconds: float) -> None:
    ramp = Ramp(low, low + more, seconds)
    steps = 2_000
    whole = sum(ramp.rate((step + 0.5) * seconds / steps) for step in range(steps)) * seconds / steps
    assert ramp.sentences(seconds) == pytest.approx(whole, rel=1e-3, abs=1.0)
    assert ramp.sentences(-1.0) == 0
    assert ramp.sentences(2 * seconds) == ramp.sentences(seconds)


def test_a_ramp_that_falls_first_is_refused() -> None:
    with pytest.raises(PenstockError, match="no rate could be told"):
        Ramp(low=10.0, peak=5.0)


def test_a_feeder_sends_every_sentence_once_in_order(tmp_path: Path) -> None:
    ramp, sentences = Ramp(low=50.0, peak=500.0, seconds=1.0), Sentences()
    with Spool(tmp_path / "in") as spool:
        feeder = RampFeeder(spool, sentences, ramp)
        feeder.start()
        assert wait_for(lambda: feeder.done or feeder.error is not None, 30.0)
        feeder.stop()
        assert feeder.error is None
        files = [path for piece in spool.subscribe("test").take(None, tmp_path) for path in piece.paths]
        numbers = [number for path in files for number in pq.ParquetFile(path).read()["number"].to_pylist()]
    assert feeder.sent == ramp.sentences(1.0) == 275
    assert numbers == list(range(275))


def test_a_tally_tells_what_is_lost_doubled_or_never_sent() -> None:
    tally = Tally()
    tally.add(f'{{"word": "{word}", "count": {n}}}' for word, n in [("a", 1), ("a", 2), ("b", 1), ("b", 1)])
    assert (tally.lost({"a": 2, "b": 1}), tally.doubled, tally.unsent({"a": 2, "b": 1})) == (0, 1, 0)
    assert (tally.lost({"a": 4, "c": 1}), tally.unsent({"a": 1})) == (3, 2)
