"""The batch computation, against a computation row by row."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.workloads.tenants import AdEvents, Job, expected, messages_of, urgent_jobs, wrong_values
from penstock.workloads.tenants.check import expected_columns, fed

JOB = replace(urgent_jobs(1)[0], rows_per_second=400, sources=4)


def row_by_row(job: Job, base: float, seconds: float) -> dict[float, float]:
    events = AdEvents(job.seed, job.events_drawn)
    windows: dict[float, list[tuple[int, int, float]]] = defaultdict(list)
    for each in messages_of(job, seconds):
        table = events.rows(each.rows, base + each.begin, base + each.end, each.source)
        for row in table.to_pylist():
            slot = row["at"].timestamp() // job.slide_seconds
            for part in range(round(job.window_seconds / job.slide_seconds)):
                windows[(slot + 1 + part) * job.slide_seconds].append(
                    (row["ad"], row["kind"], row["revenue"])
                )
    return {end: value_of(job.query, rows) for end, rows in windows.items()}


def value_of(query: str, rows: list[tuple[int, int, float]]) -> float:
    if query == "ipq3":
        return len(rows)
    if query == "ipq4":
        clicked = [ad for ad, kind, _ in rows if kind == 1]
        return sum(revenue * clicked.count(ad) for ad, kind, revenue in rows if kind == 0)
    return sum(revenue for _, kind, revenue in rows if kind == 0)


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(["ipq1", "ipq2", "ipq3", "ipq4"]), st.integers(0, 9), st.sampled_from([1.0, 2.0]))
def test_each_query_gives_what_counting_row_by_row_gives(query: str, seed: int, window: float) -> None:
    job = replace(JOB, query=query, seed=seed, window_seconds=window)
    base = 1_700_000_000.25
    found = expected(job, messages_of(job, 4.0), base)
    wanted = row_by_row(job, base, 4.0)
    assert found.keys() == wanted.keys()
    assert found == pytest.approx(wanted)
    assert sum(found.values()) > 0


@pytest.mark.parametrize("slides", [1, 5])
def test_campaigns_with_a_view_are_counted_as_they_are_row_by_row(slides: int) -> None:
    job = replace(JOB, query="ipq3", rows_per_second=80, slides=slides)
    messages = messages_of(job, 4.0)
    rows = [
        row for each in fed(job, messages) for row in zip(each["at"], each["ad"], each["kind"], strict=True)
    ]
    found = expected_columns(job, messages)["campaigns"]
    assert len(found) > 3
    for end, count in found.items():
        inside = {ad // 10 for at, ad, kind in rows if kind == 0 and end - 1.0 <= at / 1e6 < end}
        assert count == len(inside)
    assert len(set(found.values())) > 1


def test_a_value_that_is_missing_wrong_or_of_no_window_is_told() -> None:
    wanted = {10.0: 1000.0, 11.0: 2000.0}
    assert wrong_values(JOB, {10.0: 1000.0005, 11.0: 2000.0}, wanted) == []
    assert wrong_values(JOB, {10.0: 1000.1}, wanted) == [
        "urgent-1: the window until 10.000000 gives value 1000.1, and the batch computation 1000.0"
    ]
    assert wrong_values(JOB, {11.0: None}, wanted) == [
        "urgent-1: the window until 11.000000 gives value None, and the batch computation 2000.0"
    ]
    assert wrong_values(JOB, {12.5: 1.0}, wanted) == [
        "urgent-1: the window until 12.500000 gives value 1.0, and the batch computation None"
    ]
    assert len(wrong_values(JOB, {10.0: float("nan")}, wanted)) == 1
