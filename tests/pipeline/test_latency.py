from __future__ import annotations

import pickle
import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.latency import DurationError, format_seconds, parse_latency


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("800ms", 0.8),
        ("2s", 2.0),
        ("1m", 60.0),
        ("1.5 minutes", 90.0),
        (" 10 Seconds ", 10.0),
        ("250us", 0.00025),
        ("2h", 7200.0),
        ("1 day", 86400.0),
        (timedelta(milliseconds=1500), 1.5),
        (3, 3.0),
        (0.25, 0.25),
    ],
)
def test_a_target_is_read_in_every_form_people_write(written, seconds):
    assert parse_latency(written) == seconds


@pytest.mark.parametrize(
    ("written", "came"),
    [("0ms", "0 ms"), (0, "0 ms"), ("-2s", "-2 s"), (timedelta(milliseconds=-5), "-5 ms")],
)
def test_a_target_that_is_not_positive_is_refused(written, came):
    text = f"latency target must be positive, got {came}: no turn could ever meet it"
    with pytest.raises(DurationError, match=f"^{re.escape(text)}$"):
        parse_latency(written)


@pytest.mark.parametrize(
    "written", ["soon", "5", "", "5 parsecs", "s", "1s 2", None, True, float("nan"), float("inf"), b"2s"]
)
def test_what_names_no_length_of_time_is_refused(written):
    text = (
        'latency target must be a number with a unit ("800ms", "2s", "1m"), a timedelta or seconds, '
        f"got {written!r}: it names no length of time"
    )
    with pytest.raises(DurationError, match=f"^{re.escape(text)}$"):
        parse_latency(written)


def test_a_refused_duration_keeps_its_value_even_when_pickled():
    with pytest.raises(DurationError) as caught:
        parse_latency("soon")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.value, str(again)) == ("soon", str(caught.value))


@given(st.integers(min_value=1, max_value=10**6))
def test_milliseconds_are_exact(milliseconds):
    assert parse_latency(f"{milliseconds}ms") == milliseconds / 1000


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.8, "800 ms"), (0.0355, "35.5 ms"), (1, "1 s"), (90.0, "90 s")]
)
def test_seconds_are_said_in_the_unit_that_fits(seconds, said):
    assert format_seconds(seconds) == said
