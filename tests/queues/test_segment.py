import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.queues import Arrivals

bins = st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.5, 1e4)), min_size=1, max_size=200)


def spread(pairs: list[tuple[float, float]]) -> Arrivals:
    return Arrivals().merge([Arrivals.at(time, rows) for time, rows in pairs])


@given(bins)
def test_merging_keeps_rows_mean_and_both_ends_in_32_ascending_bins(pairs: list[tuple[float, float]]) -> None:
    merged = spread(pairs)
    total = sum(rows for _, rows in pairs)
    assert len(merged.bins) <= 32
    assert list(merged.bins) == sorted(merged.bins)
    assert merged.oldest == min(time for time, _ in pairs)
    assert merged.newest == max(time for time, _ in pairs)
    assert merged.rows == pytest.approx(total)
    assert merged.mean == pytest.approx(sum(time * rows for time, rows in pairs) / total, abs=1e-6)


def test_evenly_spread_arrivals_stay_evenly_spread() -> None:
    merged = spread([(float(second), 1.0) for second in range(1_000)])
    assert max(rows for _, rows in merged.bins) <= 130


def test_near_arrivals_merge_before_distant_ones() -> None:
    near = [(100 + number / 1_000, 1.0) for number in range(40)]
    merged = spread([(0.0, 1.0), *near, (200.0, 1.0), (300.0, 1.0)])
    assert (0.0, 1.0) in merged.bins
    assert (200.0, 1.0) in merged.bins


def test_scaling_keeps_the_times() -> None:
    scaled = spread([(1.0, 30.0), (2.0, 10.0)]).scaled(4)
    assert scaled.bins == ((1.0, 3.0), (2.0, 1.0))
    assert scaled.scaled(0) == Arrivals()


def test_no_arrivals_have_no_oldest() -> None:
    with pytest.raises(ValueError, match="arrivals must hold rows to have a time, got none: nothing arrived"):
        _ = Arrivals().oldest
