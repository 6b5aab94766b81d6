from __future__ import annotations

import random

import pytest

from penstock.measure.flow import FlowMeter


def test_what_a_row_becomes_is_told_by_the_queue_that_it_came_from() -> None:
    chance, meter = random.Random(1), FlowMeter()
    for _ in range(200):
        news, again = chance.randint(0, 5), chance.randint(0, 20)
        made = 4 * news + sum(chance.random() < 0.25 for _ in range(again))
        meter.passed({"news": news, "again": again}, made)
    assert meter.rows_made == pytest.approx({"news": 4.0, "again": 0.25}, abs=0.05)


def test_what_is_long_past_counts_less() -> None:
    meter = FlowMeter()
    meter.passed({"in": 100}, 100)
    for _ in range(20):
        meter.fade()
    meter.passed({"in": 100}, 50)
    assert meter.rows_made["in"] == pytest.approx(0.5, abs=0.02)
    assert FlowMeter().rows_made == {}
