"""Rows are neither lost nor made when they are cut, joined or thinned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.simulate.rows import MOST_BINS, Rows, at, joined

runs = st.lists(st.integers(1, 50), min_size=1, max_size=200).map(
    lambda weights: Rows([0.1 * place for place in range(len(weights))], [float(each) for each in weights])
)


@given(rows=runs, data=st.data())
def test_a_cut_keeps_every_row_and_the_older_ones_come_first(rows: Rows, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, rows.count))
    first, rest = rows.cut(count)
    assert (first.count, rest.count) == (count, rows.count - count)
    assert sum(first.weights) == pytest.approx(count)
    assert sum(rest.weights) == pytest.approx(rows.count - count)
    assert max(first.times) <= min(rest.times)


@given(rows=runs)
def test_thinned_rows_are_as_many_and_as_old_on_average(rows: Rows) -> None:
    thin = rows.thinned()
    assert len(thin.times) <= MOST_BINS
    assert thin.count == rows.count
    ages = [sum(t * w for t, w in zip(each.times, each.weights, strict=True)) for each in (rows, thin)]
    assert ages[1] == pytest.approx(ages[0])


def test_rows_are_scaled_and_joined() -> None:
    assert Rows([1.0, 2.0], [30.0, 10.0]).scaled(4).weights == [3.0, 1.0]
    both = joined([at([1.0, 2.0]), at([3.0])])
    assert (both.count, both.times) == (3, [1.0, 2.0, 3.0])
