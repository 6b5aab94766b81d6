"""Latency of results from their frontier, values that are checked, rows done by time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from penstock.bench.tenants.meter import Interval, ResultMeter, by_second, spread, turns_to_result
from penstock.workloads.tenants import expected, in_ticks, messages_of, urgent_jobs

JOB = replace(urgent_jobs(1)[0], sources=16, rows_per_second=4000)
BASE = 1_700_000_000.0
MESSAGES = in_ticks(messages_of(JOB, 6.0))
VALUES = expected(JOB, MESSAGES, BASE)


def result(end: float, value: float | None) -> pa.Table:
    moment = datetime.fromtimestamp(end, UTC)
    return pa.table({"at": pa.array([moment], pa.timestamp("us", "UTC")), "value": pa.array([value])})


def filled(times: dict[float, float]) -> ResultMeter:
    """A meter that gets the right value of each window, by its end, at the time given; all after BASE."""
    now = [0.0]
    meter = ResultMeter(lambda: now[0])
    for end, at in times.items():
        now[0] = BASE + at
        meter.take(result(BASE + end, VALUES[BASE + end]))
    return meter


def test_latency_is_from_the_frontier_and_a_missing_result_counts_to_the_end() -> None:
    # The last source sends at 0.969 of each second, in the tick that ends with it.
    meter = filled({1.0: 2.25, 2.0: 3.5, 4.0: 5.9})
    samples = Interval(BASE, BASE + 1.5, BASE + 5.5).samples(JOB, MESSAGES, meter.came)
    assert [at for at, _, _ in samples] == pytest.approx([2.0, 3.0, 4.0, 5.0])
    assert [latency for _, latency, _ in samples] == pytest.approx([0.25, 0.5, 1.5, 0.5])
    assert [missing for _, _, missing in samples] == [False, False, True, True]


def test_a_result_that_comes_again_counts_with_the_first_time() -> None:
    now = [BASE + 2.1]
    meter = ResultMeter(lambda: now[0])
    meter.take(result(BASE + 1, 5.0))
    now[0] += 1
    meter.take(result(BASE + 1, 5.0))
    assert meter.came == {BASE + 1: BASE + 2.1}
    assert meter.values == {BASE + 1: 5.0}
    meter.take(result(BASE + 1, 6.0))
    assert meter.values == {BASE + 1: None}


def test_a_report_tells_of_wrong_values_and_of_the_backlog() -> None:
    meter = filled({1.0: 2.25, 2.0: 3.5})
    offered = [(BASE + second, 4000) for second in range(1, 7)]
    done = [(BASE + 1.2, 4000.0), (BASE + 5.2, 4000.0)]
    interval = Interval(BASE, BASE + 2.5, BASE + 5.5)
    told = interval.job_report(JOB, MESSAGES, meter, offered, done)
    assert told["wrong"] == []
    assert (told["offered"], told["done"]) == (12_000, 4_000.0), "only what fell into the interval"
    # A second's rows are offered at its end, and done: those of one second in the second, and in the sixth.
    assert told["backlog_by_second"] == pytest.approx([1.0, 2.0, 3.0])
    assert told["done_by_second"] == [0.0, 4000.0, 0.0, 0.0, 0.0]
    meter.take(result(BASE + 3, VALUES[BASE + 3] * 1.00001))
    (wrong,) = interval.job_report(JOB, MESSAGES, meter, offered, done)["wrong"]
    assert wrong.startswith(f"urgent-1: the window until {BASE + 3:.6f} gives value ")


def test_every_column_of_a_result_is_compared() -> None:
    job = urgent_jobs(1, query="ipq3")[0]
    messages = in_ticks(messages_of(job, 3.0))
    meter = ResultMeter(lambda: BASE + 1.5)
    end, value = BASE + 1, expected(job, messages, BASE)[BASE + 1]
    meter.take(result(end, value).append_column("campaigns", pa.array([99])))
    (wrong,) = Interval(BASE, BASE, BASE + 3).job_report(job, messages, meter, [], [])["wrong"]
    assert wrong == (
        f"urgent-1: the window until {end:.6f} gives campaigns 99, and the batch computation 100.0"
    )


def test_a_value_so_far_is_a_result_once_it_is_that_of_the_whole_window() -> None:
    meter = filled({1.0: 2.25, 2.0: 3.5})
    meter.final = False
    meter.take(result(BASE + 3, VALUES[BASE + 3] / 2))
    told = Interval(BASE, BASE + 1.5, BASE + 5.5).job_report(JOB, MESSAGES, meter, [], [])
    assert told["wrong"] == []
    assert [latency for _, latency, _ in told["samples"]] == pytest.approx([0.25, 0.5, 1.5, 0.5])
    assert [missing for _, _, missing in told["samples"]] == [False, False, True, True]


def test_rows_of_a_turn_are_spread_over_the_time_it_took() -> None:
    done = spread([(BASE + 0.5, BASE + 2.5, 2000)])
    assert by_second(done, BASE, BASE + 4) == pytest.approx([500, 1000, 500, 0], abs=101)
    assert sum(rows for _, rows in done) == pytest.approx(2000)
    assert spread([(1.0, 1.0, 7)]) == [(1.0, 7.0)]


def test_turns_are_counted_from_the_frontier_until_the_last_stage_begins() -> None:
    first = [(0.5, 0.9), (1.1, 1.3), (1.4, 1.6), (1.7, 1.9)]
    last = [(1.35, 1.38), (1.65, 1.8), (2.5, 2.6)]
    # Granted before its frontier a turn does not count, nor does one that ends after the last began.
    assert turns_to_result({10.0: 1.0}, {10.0: 1.36}, first, last) == [1]
    assert turns_to_result({10.0: 1.0}, {10.0: 1.75}, first, last) == [2]
    assert turns_to_result({10.0: 0.95, 11.0: 1.0}, {10.0: 2.55}, first, last) == [3]
    assert turns_to_result({10.0: 0.95}, {10.0: 0.2}, first, last) == []


def test_where_one_stage_does_it_all_the_turn_that_brings_the_result_counts() -> None:
    turns = [(0.8, 1.1), (1.1, 1.3), (1.4, 1.6)]
    assert turns_to_result({10.0: 1.0}, {10.0: 1.25}, turns) == [1]
    assert turns_to_result({10.0: 1.0}, {10.0: 1.55}, turns) == [2]
