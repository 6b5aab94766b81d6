"""lambda, mu and squared coefficients of variation, from events."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from statistics import fmean, pvariance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.measure.moments import MomentMeter, Spread, StageMoments
from penstock.measure.smoothing import AlphaSmoothing, Smoothing, WindowSmoothing

values = st.lists(st.floats(0.001, 1000.0), min_size=1, max_size=40)


def scv(sample: Sequence[float]) -> float:
    return pvariance(sample) / fmean(sample) ** 2


@given(sample=values)
def test_a_spread_is_what_statistics_say(sample: list[float]) -> None:
    spread = Spread()
    for value in sample:
        spread.add(value)
    assert spread.count == len(sample)
    assert spread.mean == pytest.approx(fmean(sample))
    assert spread.scv == pytest.approx(scv(sample), abs=1e-9)


@given(one=values, other=values)
def test_two_instances_together_are_one_sample(one: list[float], other: list[float]) -> None:
    both, second = Spread(), Spread()
    for value in one:
        both.add(value)
    for value in other:
        second.add(value)
    both.merge(second)
    assert both.mean == pytest.approx(fmean(one + other))
    assert both.scv == pytest.approx(scv(one + other), abs=1e-9)


def test_nothing_is_known_before_the_first_interval_has_ended() -> None:
    meter = MomentMeter(100.0, interval_seconds=60.0)
    meter.arrived(101.0)
    meter.served(0.5)
    assert meter.look(159.0) == StageMoments()
    assert not meter.look(159.0).known
    assert meter.look(160.0).known


def fed(
    meter: MomentMeter, seed: int, seconds: float, gap_shape: float, service_shape: float
) -> StageMoments:
    """After some time at 50 rows a second of 0.1 s each, more or less regular, looked at every second."""
    rng, now, look = random.Random(seed), 0.0, 1.0
    while now < seconds:
        now += rng.gammavariate(gap_shape, 1.0 / (50.0 * gap_shape))
        while look <= now:
            meter.look(look)
            look += 1.0
        meter.arrived(now)
        meter.served(rng.gammavariate(service_shape, 0.1 / service_shape))
    return meter.look(now)


@pytest.mark.parametrize("every_rows", [1, 7])
@pytest.mark.parametrize(("gap_shape", "service_shape"), [(1.0, 1.0), (4.0, 0.5), (0.5, 4.0)])
def test_known_streams_are_told_by_their_figures(
    every_rows: int, gap_shape: float, service_shape: float
) -> None:
    meter = MomentMeter(0.0, every_rows, 20.0, lambda: WindowSmoothing(10))
    figures = fed(meter, 3, 200.0, gap_shape, service_shape)
    assert figures.rows_per_second == pytest.approx(50.0, rel=0.05)
    assert figures.slot_rows_per_second == pytest.approx(10.0, rel=0.1)
    assert figures.arrival_scv == pytest.approx(1.0 / gap_shape, rel=0.2)
    assert figures.service_scv == pytest.approx(1.0 / service_shape, rel=0.2)
    assert figures.intervals == 10
    assert figures.samples * every_rows == pytest.approx(10_000, rel=0.05)


def test_rows_are_counted_even_where_they_are_not_sampled() -> None:
    meter = MomentMeter(0.0, every_rows=100, interval_seconds=10.0)
    for number in range(50):
        meter.arrived(number / 5.0)
        meter.served(0.1)
    figures = meter.look(10.0)
    assert figures.rows_per_second == 5.0
    assert figures.samples == 0
    assert not figures.known


def test_one_row_in_so_many_is_sampled() -> None:
    meter = MomentMeter(0.0, every_rows=3, interval_seconds=100.0)
    # Every third row comes 2 s after the last, and takes 0.5 s; the others 1 s and 0.1 s.
    at = 0.0
    for number in range(1, 31):
        at += 2.0 if number % 3 == 0 else 1.0
        meter.arrived(at)
        meter.served(0.5 if number % 3 == 0 else 0.1)
    figures = meter.look(100.0)
    assert (figures.samples, figures.slot_rows_per_second) == (10, 2.0)
    assert (figures.arrival_scv, figures.service_scv) == (0.0, 0.0)


def test_rows_that_come_in_segments_are_bursty() -> None:
    # Ten rows every second: gaps of 1, 0, 0, ...: mean 0.1, variance 0.09.
    for every_rows in (1, 10, 25):
        meter = MomentMeter(0.0, every_rows, interval_seconds=100.0)
        for second in range(100):
            meter.arrived(second + 1.0, rows=10)
        figures = meter.look(100.0)
        assert figures.rows_per_second == 10.0
        assert figures.arrival_scv == pytest.approx(9.0)


def test_rows_of_a_turn_share_its_time() -> None:
    meter = MomentMeter(0.0, interval_seconds=10.0)
    meter.served(2.0, rows=4)
    meter.served(1.0, rows=1)
    figures = meter.look(10.0)
    assert figures.slot_rows_per_second == pytest.approx(5 / 3.0)
    assert figures.samples == 5


def test_an_interval_without_rows_lowers_the_rate_and_leaves_the_rest() -> None:
    meter = MomentMeter(0.0, interval_seconds=10.0, smoothing=lambda: WindowSmoothing(2))
    for at in (1.0, 2.0, 9.0):
        meter.arrived(at)
        meter.served(0.5)
    first, second = meter.look(10.0), meter.look(20.0)
    assert (first.rows_per_second, second.rows_per_second) == (0.3, 0.15)
    assert second.slot_rows_per_second == first.slot_rows_per_second == 2.0
    assert second.arrival_scv == first.arrival_scv


@pytest.mark.parametrize(
    ("smoothing", "rates"),
    [(lambda: AlphaSmoothing(0.5), [4.0, 6.0, 7.0]), (lambda: WindowSmoothing(2), [4.0, 6.0, 8.0])],
)
def test_rates_are_smoothed_by_alpha_or_window(
    smoothing: Callable[[], Smoothing], rates: list[float]
) -> None:
    meter = MomentMeter(0.0, interval_seconds=10.0, smoothing=smoothing)
    seen = []
    for interval, rows in enumerate((40, 80, 80)):
        meter.arrived(10.0 * interval + 5.0, rows)
        seen.append(meter.look(10.0 * (interval + 1)).rows_per_second)
    assert seen == rates


@given(rates=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30), alpha=st.floats(0.0, 0.99))
def test_what_is_smoothed_stays_between_what_was_measured(rates: list[float], alpha: float) -> None:
    for smoothing in (AlphaSmoothing(alpha), WindowSmoothing(4)):
        for place, rate in enumerate(rates):
            smoothed = smoothing.smooth(rate)
            seen = rates[: place + 1]
            assert min(seen) * (1 - 1e-9) - 1e-12 <= smoothed <= max(seen) * (1 + 1e-9) + 1e-12


def test_settings_that_measure_nothing_are_refused() -> None:
    with pytest.raises(PenstockError) as error:
        MomentMeter(0.0, every_rows=0)
    assert str(error.value) == (
        "a meter of moments must sample every 1 or more rows and have intervals of some length, "
        "got 0 rows and 60.0 s: nothing would be measured"
    )
    with pytest.raises(PenstockError, match="alpha must be 0 or more and less than 1, got 1"):
        AlphaSmoothing(1.0)
    with pytest.raises(PenstockError, match="a window must have at least 1 measurement, got 0"):
        WindowSmoothing(0)
