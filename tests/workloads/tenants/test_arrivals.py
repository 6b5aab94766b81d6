"""What arrives for a job: totals, ratios, and event time without a gap."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.workloads.tenants import ARRIVALS, Job, Message, completed_at, in_ticks, messages_of
from penstock.workloads.tenants.groups import bulk_jobs, urgent_jobs

URGENT = urgent_jobs(1)[0]


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    sources = draw(st.integers(1, 20))
    period = draw(st.sampled_from([0.5, 1.0, 2.5]))
    return Job(
        name="j",
        group="bulk",
        query="ipq1",
        window_seconds=draw(st.sampled_from([1.0, 2.0, 10.0])),
        target_seconds=1.0,
        sources=sources,
        rows_per_second=draw(st.floats(sources / period, 20_000)),
        arrivals=draw(st.sampled_from(sorted(ARRIVALS))),  # type: ignore[arg-type]
        message_seconds=period,
        starts_at=draw(st.sampled_from([0.0, 7.0])),
        seed=draw(st.integers(0, 99)),
    )


def by_source(messages: list[Message]) -> dict[int, list[Message]]:
    found: dict[int, list[Message]] = defaultdict(list)
    for each in messages:
        found[each.source].append(each)
    return found


@settings(deadline=None)
@given(jobs())
def test_every_source_goes_on_where_it_ended_with_a_row_in_every_message(job: Job) -> None:
    messages = messages_of(job, 30.0)
    assert messages == sorted(messages, key=lambda each: each.due)
    sources = by_source(messages)
    assert set(sources) == set(range(job.sources))
    for own in sources.values():
        assert all(each.rows >= 1 and each.due == each.end for each in own)
        for before, after in pairwise(own):
            assert after.begin == pytest.approx(before.end)
        assert own[0].begin >= job.starts_at - job.message_seconds
        assert own[-1].due > 30.0 - job.message_seconds - 1e-9
    assert messages[-1].due <= 30.0


@given(st.sampled_from(["constant", "pareto", "skewed", "bursts"]), st.integers(0, 50))
def test_the_mean_is_that_of_the_job_whatever_the_arrivals(name: str, seed: int) -> None:
    job = replace(URGENT, arrivals=name, seed=seed, rows_per_second=40_000)
    rows = sum(each.rows for each in messages_of(job, 100.0))
    assert rows == pytest.approx(100 * 40_000, rel=0.01)


def volumes(job: Job, seconds: float = 100.0) -> list[int]:
    found: dict[int, int] = defaultdict(int)
    for each in messages_of(job, seconds):
        found[int(each.due)] += each.rows
    return list(found.values())


def test_constant_seconds_are_alike_and_pareto_ones_have_a_long_tail() -> None:
    assert set(volumes(URGENT)) == {3968}
    heavy = volumes(replace(URGENT, arrivals="pareto", rows_per_second=40_000))
    assert max(heavy) > 4 * 40_000
    # The least of a Pareto distribution with alpha 1.5 is a third of its mean.
    assert 0.2 * 40_000 < min(heavy) < 0.6 * 40_000
    assert sorted(heavy)[50] < 40_000


def test_one_source_has_200_times_the_rows_of_the_least() -> None:
    job = replace(URGENT, arrivals="skewed", rows_per_second=43_000)
    totals = sorted(sum(each.rows for each in own) for own in by_source(messages_of(job, 50.0)).values())
    assert totals[-1] / totals[0] == pytest.approx(200, rel=0.01)
    assert totals[0] == pytest.approx(totals[-2], abs=50)


def test_bursts_are_loud_for_two_seconds_of_ten() -> None:
    seconds = volumes(replace(URGENT, arrivals="bursts", rows_per_second=40_000))
    loud = [rows for rows in seconds if rows > 40_000]
    assert len(loud) == 20
    assert min(loud) > 4 * 40_000
    assert max(rows for rows in seconds if rows <= 40_000) < 0.2 * 40_000


def test_messages_of_a_tick_arrive_at_its_end_in_their_order() -> None:
    messages = messages_of(URGENT, 3.0)
    ticked = in_ticks(messages, 0.1)
    assert [each.source for each in ticked] == [each.source for each in messages]
    for before, after in zip(messages, ticked, strict=True):
        assert -1e-9 <= after.due - before.due < 0.1
        assert after.due * 10 == pytest.approx(round(after.due * 10))
        assert (after.begin, after.end, after.rows) == (before.begin, before.end, before.rows)


def test_a_window_is_complete_when_the_last_source_has_reached_its_end() -> None:
    messages = [
        Message(due=1.0, source=0, rows=10, begin=0.0, end=1.0),
        Message(due=1.5, source=1, rows=10, begin=0.5, end=1.5),
        Message(due=2.0, source=0, rows=10, begin=1.0, end=2.0),
        Message(due=2.5, source=1, rows=10, begin=1.5, end=2.5),
    ]
    # The last event of the first message is of 0.9: source 0 reaches 1.0 with its second.
    assert completed_at(messages, 1.0, 1.0) == {1.0: 2.0}
    assert completed_at(messages, 1.0, 0.5) == {0.5: 1.5, 1.0: 2.0, 1.5: 2.5}
    assert completed_at(messages, 1.0, 1.0, base=100.25) == {101.0: 101.75, 102.0: 102.75}
    assert completed_at([], 1.0, 1.0) == {}


@settings(deadline=None)
@given(jobs(), st.integers(1_000_000, 2_000_000))
def test_no_row_of_a_window_is_due_after_its_frontier(job: Job, base: int) -> None:
    messages = in_ticks(messages_of(job, 30.0))
    moments = completed_at(messages, job.window_seconds, job.slide_seconds, float(base))
    assert list(moments) == sorted(moments)
    assert list(moments.values()) == sorted(moments.values())
    for end, moment in moments.items():
        later = [each for each in messages if base + each.due > moment + 1e-6]
        assert all(
            base + each.begin >= end - 1e-3 * job.message_seconds for each in later if each.rows > 1000
        )
        assert all(base + each.begin >= end - 1e-6 for each in later)


def test_groups_are_those_of_the_paper_at_the_size_of_this_machine() -> None:
    urgent, bulk = urgent_jobs(), bulk_jobs(400_000)
    assert [each.name for each in urgent] == ["urgent-1", "urgent-2", "urgent-3", "urgent-4"]
    assert {(each.window_seconds, each.target_seconds, each.rows_per_second) for each in urgent} == {
        (1.0, 0.8, 3968)
    }
    assert {each.sources for each in urgent} == {64}
    assert {(each.window_seconds, each.target_seconds, each.rows_per_second) for each in bulk} == {
        (10.0, 7200.0, 100_000)
    }
    assert len({each.seed for each in (*urgent, *bulk)}) == 8
    assert replace(URGENT, query="ipq2").slide_seconds == 0.5
    drawn = [replace(URGENT, rows_per_second=rate, sources=1).events_drawn for rate in (1, 200, 4000)]
    assert drawn == [1 << 10, 1 << 14, 1 << 17]


def test_a_job_whose_sources_could_send_nothing_is_refused() -> None:
    with pytest.raises(PenstockError) as refused:
        replace(URGENT, rows_per_second=8)
    assert str(refused.value) == (
        "job 'urgent-1' must have a row in every message, 64 rows/s or more, got 8: "
        "windows would wait for sources that send nothing"
    )
    with pytest.raises(PenstockError) as refused:
        replace(URGENT, sources=0)
    assert str(refused.value) == (
        "job 'urgent-1' must have a source that sends now and then, got 0 sources, every 1 s: "
        "no window would ever be complete"
    )


def test_a_job_whose_results_could_not_be_checked_is_refused() -> None:
    with pytest.raises(PenstockError, match="windows that do not overlap for ipq4, got 4 slides"):
        replace(urgent_jobs(1, query="ipq4")[0], slides=4)
