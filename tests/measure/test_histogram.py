import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.measure.histogram import HistogramError, LatencyHistogram

in_range = st.floats(10e-6, 1e6)
weighted = st.lists(st.tuples(in_range, st.floats(0.01, 1000.0)), min_size=1, max_size=60)


def histogram_of(*seconds: float) -> LatencyHistogram:
    histogram = LatencyHistogram()
    histogram.add_many((one, 1.0) for one in seconds)
    return histogram


@given(st.lists(in_range, min_size=1, max_size=200), st.floats(0.0, 1.0))
def test_a_quantile_is_within_two_percent_of_the_sorted_values(seconds: list[float], q: float) -> None:
    rank = max(math.ceil(q * len(seconds)), 1)
    exact = sorted(seconds)[rank - 1]
    assert histogram_of(*seconds).quantile(q) == pytest.approx(exact, rel=0.02)


@given(weighted, in_range)
def test_a_share_lies_between_those_of_limits_four_percent_away(
    latencies: list[tuple[float, float]], limit: float
) -> None:
    histogram = LatencyHistogram()
    histogram.add_many(latencies)

    def exact(bound: float) -> float:
        return sum(rows for seconds, rows in latencies if seconds <= bound) / sum(
            rows for _, rows in latencies
        )

    assert exact(limit / 1.041) - 1e-9 <= histogram.share_within(limit) <= exact(limit * 1.041) + 1e-9


@given(weighted, weighted)
def test_merged_histograms_are_the_histogram_of_all_rows(
    left: list[tuple[float, float]], right: list[tuple[float, float]]
) -> None:
    merged, other, together = LatencyHistogram(), LatencyHistogram(), LatencyHistogram()
    merged.add_many(left)
    other.add_many(right)
    together.add_many(left + right)
    merged.merge(other)
    assert merged.count == pytest.approx(together.count)
    assert merged.mean == pytest.approx(together.mean)
    assert merged.least == together.least
    assert merged.greatest == together.greatest
    assert merged.to_json()["buckets"] == pytest.approx(together.to_json()["buckets"])


@given(weighted)
def test_a_histogram_survives_json(latencies: list[tuple[float, float]]) -> None:
    histogram = LatencyHistogram()
    histogram.add_many(latencies)
    assert LatencyHistogram.from_json(json.loads(json.dumps(histogram.to_json()))) == histogram


def test_an_empty_histogram_survives_json_and_takes_rows_afterwards() -> None:
    histogram = LatencyHistogram.from_json(json.loads(json.dumps(LatencyHistogram().to_json())))
    histogram.add(2.0)
    assert histogram == histogram_of(2.0)


def test_an_empty_histogram_gives_zeros() -> None:
    empty = LatencyHistogram()
    assert (empty.count, empty.mean, empty.least, empty.greatest) == (0.0, 0.0, 0.0, 0.0)
    assert (empty.quantile(0.99), empty.share_within(1.0)) == (0.0, 0.0)


def test_rows_may_be_fractions() -> None:
    histogram = LatencyHistogram()
    histogram.add(1.0, rows=0.25)
    histogram.add(3.0, rows=0.75)
    assert histogram.count == 1.0
    assert histogram.mean == 2.5
    assert histogram.quantile(0.25) == pytest.approx(1.0, rel=0.02)
    assert histogram.quantile(0.26) == pytest.approx(3.0, rel=0.02)


def test_zero_rows_leave_no_trace() -> None:
    histogram = LatencyHistogram()
    histogram.add(5.0, rows=0.0)
    assert histogram == LatencyHistogram()


def test_a_limit_at_the_longest_latency_holds_all_rows_and_one_below_the_shortest_none() -> None:
    histogram = histogram_of(0.5, 0.8)
    assert histogram.share_within(0.8) == 1.0
    assert histogram.share_within(0.4999) == 0.0


def test_counts_within_bounds_are_the_shares_within_them() -> None:
    histogram = histogram_of(0.2, 0.3, 0.7, 3.0)
    assert histogram.counts_within(0.1, 0.5, 1.0, 5.0) == pytest.approx((0.0, 2.0, 3.0, 4.0))
    assert histogram.counts_within(0.31)[0] / 4 == histogram.share_within(0.31)
    assert LatencyHistogram().counts_within(1.0) == (0.0,)


def test_a_latency_after_the_clock_was_set_back_counts_as_zero() -> None:
    assert histogram_of(-3.0) == histogram_of(0.0)


def test_latencies_beyond_both_ends_are_counted_at_the_ends() -> None:
    histogram = histogram_of(1e-9, 5e7)
    assert histogram.count == 2.0
    assert histogram.quantile(0.5) == pytest.approx(0.0, abs=10e-6)
    assert histogram.quantile(0.99) == 1e6
    assert histogram.quantile(1.0) == histogram.greatest == 5e7
    assert histogram.share_within(10.0) == 0.5


def test_a_histogram_prints_its_rows_and_percentiles() -> None:
    assert repr(histogram_of(*[2.0] * 1200)) == "LatencyHistogram(1,200 rows, p50 2 s, p99 2 s)"


@pytest.mark.parametrize(
    ("seconds", "rows", "text"),
    [
        (1.0, -2.0, "rows must be zero or more, got -2.0: they are the weight of a latency"),
        (1.0, math.nan, "rows must be zero or more, got nan: they are the weight of a latency"),
        (math.nan, 1.0, "a latency must be a finite number of seconds, got nan: no bucket holds it"),
        (math.inf, 1.0, "a latency must be a finite number of seconds, got inf: no bucket holds it"),
    ],
)
def test_a_latency_or_weight_that_cannot_be_is_refused(seconds: float, rows: float, text: str) -> None:
    with pytest.raises(HistogramError) as error:
        LatencyHistogram().add(seconds, rows)
    assert str(error.value) == text


def test_a_quantile_above_one_is_refused() -> None:
    with pytest.raises(HistogramError) as error:
        LatencyHistogram().quantile(99)
    assert str(error.value) == "a quantile must be between 0 and 1, got 99: 0.99 is the 99th percentile"


def test_a_stored_histogram_with_other_buckets_is_refused() -> None:
    with pytest.raises(HistogramError) as error:
        LatencyHistogram.from_json(LatencyHistogram().to_json() | {"growth": 1.1})
    assert str(error.value) == (
        "a stored histogram must have growth 1.04 from 1e-05 s, got growth 1.1 from 1e-05 s: "
        "its buckets cannot be read as these"
    )


def test_a_stored_histogram_with_a_bucket_too_many_is_refused() -> None:
    with pytest.raises(HistogramError) as error:
        LatencyHistogram.from_json(LatencyHistogram().to_json() | {"buckets": {"9999": 1.0}})
    assert str(error.value) == "a stored histogram has buckets 0 to 647, got 9999: it is damaged"


def test_what_came_since_an_earlier_state_is_told_apart() -> None:
    histogram = LatencyHistogram()
    histogram.add(5.0, 100)
    before = LatencyHistogram.from_json(histogram.to_json())
    histogram.add_many([(0.1, 30), (0.4, 10)])
    fresh = histogram.since(before)
    assert fresh.count == 40
    assert fresh.quantile(0.5) == pytest.approx(0.1, rel=0.02)
    assert fresh.quantile(0.95) == pytest.approx(0.4, rel=0.02)


@given(st.lists(st.tuples(st.floats(-1.0, 2e6), st.floats(0.0, 1000.0)), max_size=60))
def test_a_block_counts_as_its_rows_do_one_by_one(latencies: list[tuple[float, float]]) -> None:
    singly, at_once = LatencyHistogram(), LatencyHistogram()
    singly.add_many(latencies)
    at_once.add_block([seconds for seconds, _ in latencies], [rows for _, rows in latencies])
    assert (at_once.least, at_once.greatest) == (singly.least, singly.greatest)
    assert (at_once.count, at_once.mean) == (pytest.approx(singly.count), pytest.approx(singly.mean))
    for q in (0.1, 0.5, 0.99):
        assert at_once.quantile(q) == pytest.approx(singly.quantile(q), rel=0.041)


def test_a_block_with_what_no_bucket_holds_is_refused() -> None:
    for seconds, rows in ((math.nan, 1.0), (1.0, -1.0)):
        with pytest.raises(HistogramError, match="latencies and rows must be finite and not negative"):
            LatencyHistogram().add_block([seconds], [rows])


def test_a_copy_stays_as_it_is_when_rows_are_added() -> None:
    histogram = LatencyHistogram()
    histogram.add(5.0, 100)
    kept = histogram.copy()
    histogram.add(1.0, 100)
    assert (kept.count, kept.quantile(0.5), kept.least) == (100, 5.0, 5.0)
    assert histogram.since(kept).count == 100
    assert histogram.since(histogram.copy()) == LatencyHistogram()
