"""The trace of `bench crash`, the result expected of it, and how a difference is counted."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from penstock.bench.crash import plan_kills, trace_settings
from penstock.bench.crash_trace import (
    LATE_SECONDS,
    START,
    Comparison,
    Outcome,
    TraceSettings,
    compare,
    expected,
    trace_lines,
)

SETTINGS = TraceSettings(rows=2000, rows_per_second=100, seed=4)


def outcome() -> Outcome:
    return expected(trace_lines(SETTINGS))


def test_a_seed_fixes_the_trace() -> None:
    assert trace_lines(SETTINGS) == trace_lines(SETTINGS)
    assert trace_lines(SETTINGS) != trace_lines(TraceSettings(2000, 100, seed=5))


def test_every_row_is_expected_somewhere() -> None:
    wanted = outcome()
    assert wanted.each.total() + wanted.bad.total() == 2000
    assert wanted.bad.total() > 0
    assert wanted.each.total() > wanted.unique.total(), "some rows come twice"
    open_rows = wanted.each.total() - sum(rows[0][0] for rows in wanted.windows.values())
    assert open_rows == 1, "the last row closes all windows but its own"


def test_no_row_comes_so_late_that_its_window_is_closed() -> None:
    newest = START
    for line in trace_lines(SETTINGS):
        if line.startswith("{"):
            at = datetime.fromisoformat(line.split('"ts": "')[1].split('"')[0]).astimezone(UTC)
            assert at > newest - timedelta(seconds=LATE_SECONDS)
            newest = max(newest, at)


def test_what_agrees_has_no_difference() -> None:
    assert compare(outcome(), outcome()) == Comparison(0, 0, 0)


def test_a_row_too_few_and_one_too_many_are_counted_in_each_sink() -> None:
    got = outcome()
    got.each[next(iter(got.each))] += 1
    got.unique -= Counter([next(iter(got.unique))])
    got.bad -= Counter([next(iter(got.bad))])
    assert compare(outcome(), got) == Comparison(lost=2, doubled=1, wrong_windows=0)


def test_windows_missing_doubled_or_wrong_are_counted_with_their_rows() -> None:
    got = outcome()
    missing, doubled, wrong = list(got.windows)[:3]
    lost = got.windows.pop(missing)[0][0]
    got.windows[doubled] *= 2
    count, total = got.windows[wrong][0]
    got.windows[wrong] = [(count, total + 1)]
    extra = got.windows[doubled][0][0]
    assert compare(outcome(), got) == Comparison(lost=lost, doubled=extra, wrong_windows=3)


def test_kills_fall_in_turns_in_recovery_and_into_the_start() -> None:
    kills = plan_kills(20, seed=1)
    assert Counter(kill.after for kill in kills) == {"turn": 13, "submitting": 5, "opening": 2}
    assert kills == plan_kills(20, seed=1)
    assert trace_settings(kills, 1).rows > 0
