"""Figures over the managers' period."""

from __future__ import annotations

from penstock.act import RecentFigures
from penstock.measure.stage_meter import StageMeter


def test_a_rate_is_of_the_last_window_not_of_the_meters_minute() -> None:
    meter, recent = StageMeter(0.0), RecentFigures(5.0)
    rates = []
    for second in range(30):
        arrived = 10 if second < 15 else 100
        meter.queue_changed(0, second + 0.5, arrived)
        rates.append(recent.of("p.s", meter, second + 1.0).arrival_rows_per_second)
    assert rates[1:15] == [10.0] * 14
    assert rates[20:] == [100.0] * 10
    assert meter.figures(30.0).arrival_rows_per_second == 55.0


def test_a_stage_that_was_started_anew_is_measured_from_there() -> None:
    recent, old = RecentFigures(5.0), StageMeter(0.0)
    recent.of("p.s", old, 100.0)
    new = StageMeter(90.0)
    new.queue_changed(0, 91.0, 20)
    recent.of("p.s", new, 92.0)
    new.queue_changed(0, 93.0, 20)
    assert recent.of("p.s", new, 94.0).arrival_rows_per_second == 10.0


def test_a_meter_that_takes_the_place_of_another_is_not_measured_against_it() -> None:
    recent, old = RecentFigures(30.0), StageMeter(0.0)
    recent.of("p.s", old, 0.0)
    old.queue_changed(0, 100.0, 10_000)
    recent.of("p.s", old, 100.0)
    new = StageMeter(110.0)
    recent.of("p.s", new, 110.0)
    new.queue_changed(0, 120.0, 50)
    assert recent.of("p.s", new, 120.0).arrival_rows_per_second == 5.0
