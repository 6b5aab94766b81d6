"""Rows over time: as many as the rate says, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.simulate import Arrivals, Bursts, Renewal, SimulationError, Steps, Ticks, Trace


def came(arrivals: Arrivals, seconds: float, seed: int = 1) -> tuple[list[float], list[float]]:
    times: list[float] = []
    rows: list[float] = []
    for some_times, some_rows in arrivals.blocks(np.random.default_rng(seed), 0.0, seconds):
        times += some_times
        rows += some_rows
    return times, rows


def test_ticks_bring_their_part_of_the_rate_and_no_rounding_changes_the_total() -> None:
    times, rows = came(Ticks(1003.0, 0.1, phase_seconds=0.05), 1000.05)
    assert times[:3] == pytest.approx([0.15, 0.25, 0.35])
    assert len(times) == 10_000
    assert sum(rows) == 1_003_000
    assert set(rows) == {100.0, 101.0}


def test_ticks_that_would_have_no_row_come_less_often() -> None:
    times, rows = came(Ticks(0.5, 0.1), 20.0)
    assert times == pytest.approx([2.0 * number for number in range(1, 11)])
    assert set(rows) == {1.0}


@pytest.mark.parametrize("scv", [0.0, 0.25, 1.0, 4.0])
def test_gaps_have_the_mean_and_the_variation_asked_for(scv: float) -> None:
    times, rows = came(Renewal(20.0, scv), 2000.0)
    gaps = np.diff(times)
    assert sum(rows) == len(times) == pytest.approx(40_000, rel=0.03)
    assert float(np.var(gaps) / np.mean(gaps) ** 2) == pytest.approx(scv, rel=0.06, abs=1e-9)


def test_bursts_keep_the_mean_and_a_few_of_them_are_most_of_it() -> None:
    _, rows = came(Bursts(1000.0, tick_seconds=1.0), 40_000.0)
    assert float(np.mean(rows)) == pytest.approx(1000.0, rel=0.1)
    assert max(rows) > 50 * float(np.median(rows))


def test_rates_change_at_their_times() -> None:
    times, rows = came(Steps(Ticks(100.0), ((10.0, 3.0), (20.0, 0.0), (30.0, 1.0))), 40.0)
    by_ten = np.histogram(np.array(times) - 1e-6, bins=(0, 10, 20, 30, 40), weights=rows)[0]
    assert by_ten.tolist() == [1000, 3000, 0, 1000]


def test_a_trace_comes_as_it_was_and_scaled_with_more_rows_at_the_same_times() -> None:
    trace = Trace((0.5, 1.5, 2.5), (10.0, 1.0, 4.0))
    assert came(trace, 2.0) == ([0.5, 1.5], [10.0, 1.0])
    assert came(trace.scaled(3.0), 3.0) == ([0.5, 1.5, 2.5], [30.0, 3.0, 12.0])
    assert trace.rows_per_second == 6.0


def test_arrivals_repeat_under_one_seed_and_differ_under_another() -> None:
    assert came(Renewal(5.0), 100.0) == came(Renewal(5.0), 100.0)
    assert came(Renewal(5.0), 100.0) != came(Renewal(5.0), 100.0, seed=2)


def test_what_cannot_come_is_refused() -> None:
    with pytest.raises(SimulationError) as error:
        Ticks(0.0)
    assert str(error.value) == ("an arrival rate must be positive and finite, got 0.0: no row would come")
    with pytest.raises(SimulationError, match="a trace must have times in order and rows for each"):
        Trace((2.0, 1.0), (1.0, 1.0))
    with pytest.raises(SimulationError, match=r"alpha of bursts must be over 1, got 1\.0"):
        Bursts(1.0, alpha=1.0)
