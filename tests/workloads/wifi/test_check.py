"""The plain computation itself, on rows that can be worked out by hand."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.privacy.policies import Policy
from penstock.workloads.wifi import PRODUCTS, Checked
from penstock.workloads.wifi.check import floor_time, noise_bound

NINE = datetime(2020, 1, 6, 9, tzinfo=UTC)
PLACES = {"a1": "a", "a2": "a", "b1": "b"}


def row(subject: str, ap: str, seconds: float) -> dict[str, Any]:
    at = NINE + timedelta(seconds=seconds)
    return {"subject": subject, "mac": f"mac of {subject}", "ap": ap, "at": at}


def all_day(*subjects: str) -> list[Policy]:
    products = PRODUCTS.values()
    return [Policy(each, product.consumer, [product.purpose]) for each in subjects for product in products]


def test_only_who_comes_after_an_exposed_subject_and_in_time_is_warned() -> None:
    rows = [
        row("early", "a1", 0),
        row("ill", "a1", 10),
        row("elsewhere", "a2", 11),
        row("met", "a1", 10 + 900),
        row("late", "a1", 10 + 900.000001),
    ]
    checked = Checked(rows, all_day("early", "ill", "elsewhere", "met", "late"), PLACES, {"ill"})
    at, before = NINE + timedelta(seconds=910), NINE + timedelta(seconds=10)
    assert checked.exposure() == [{"subject": "met", "ap": "a1", "at": at, "exposed_at": before}]
    without = Checked(rows, all_day("early", "elsewhere", "met", "late"), PLACES, {"ill"})
    assert without.exposure() == [], "who allows nothing warns nobody either"


def test_policies_hold_for_their_consumer_purpose_and_hours_only() -> None:
    product = PRODUCTS["concierge"]
    hours = {
        "morning": ("08:00", "09:00"),
        "from nine": ("09:00", "10:00"),
        "night": ("22:00", "06:00"),
        "until noon": (None, "12:00"),
        "over midnight": ("08:30", "03:00"),
    }
    policies = [Policy(name, product.consumer, [product.purpose], *each) for name, each in hours.items()]
    policies += [Policy("other use", product.consumer, ["advertising"]), *all_day("always")]
    policies += [Policy("other consumer", "somebody", [product.purpose])]
    names = [*hours, "other use", "other consumer", "always", "nothing said"]
    found = Checked([row(name, "a1", place) for place, name in enumerate(names)], policies, PLACES)
    told = {each["subject"] for each in found.concierge()}
    assert told == {"from nine", "until noon", "over midnight", "always"}


def test_moves_are_between_buildings_and_not_within_one() -> None:
    rows = [row("p", "a1", 0), row("p", "a2", 1), row("p", "b1", 2), row("q", "b1", 3), row("p", "a1", 7)]
    random.Random(1).shuffle(rows)
    moves = Checked(rows, all_day("p", "q"), PLACES).moves()
    assert [(at - NINE, way, who) for at, way, who in moves] == [
        (timedelta(seconds=2), ("a", "b"), "p"),
        (timedelta(seconds=7), ("b", "a"), "p"),
    ]


def test_flow_has_all_windows_that_somebody_was_seen_in() -> None:
    rows = [row("p", "a1", 0), row("p", "b1", 2), row("q", "b1", 6), row("r", "a1", 11)]
    found = Checked(rows, all_day("p", "q"), PLACES).flow(timedelta(seconds=5), 1)
    assert found == {NINE: {"b": 1}, NINE + timedelta(seconds=5): {}}


def test_occupancy_counts_different_subjects_of_a_window() -> None:
    rows = [row("p", "a1", 0), row("p", "a2", 1), row("q", "a1", 9.9), row("q", "a1", 10), row("q", "b1", 11)]
    found = Checked(rows, all_day("p", "q"), PLACES).occupancy(timedelta(seconds=10))
    assert found == {NINE: {"a": 2}, NINE + timedelta(seconds=10): {"a": 1, "b": 1}}


@given(st.datetimes(datetime(1960, 1, 1), datetime(2060, 1, 1)), st.integers(1, 100_000))
def test_a_floored_time_lies_at_a_whole_step_at_most_one_before(at: datetime, seconds: int) -> None:
    moment, step = at.replace(tzinfo=UTC), timedelta(seconds=seconds)
    floored = floor_time(moment, step)
    assert timedelta(0) <= moment - floored < step
    assert (floored - datetime(1970, 1, 1, tzinfo=UTC)) % step == timedelta(0)


def test_the_bound_of_noise_is_where_laplace_ends_for_all_practical_ends() -> None:
    bound = noise_bound(2.5, 100)
    assert 100 * math.exp(-bound / 2.5) == pytest.approx(1e-9)
