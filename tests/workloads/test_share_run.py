"""Figures from the events of a run."""

import math

import pytest
from tests.workloads.recorded import CREATED_MS, STARTED_AT, WARMUP_SECONDS, recorded_run

from penstock.workloads.share_run import Sample, Score, ShareRun, total
from penstock.workloads.shared_pool import LOADS, SIDES

URGENT = LOADS[0]


def test_latency_runs_from_the_frontier_to_the_sink() -> None:
    score = recorded_run("penstock", 0.25).group("urgent")
    assert score.p50 == pytest.approx(0.25)
    assert score.p99 == pytest.approx(0.25)
    assert score.share_in_time == 1.0


def test_windows_completed_in_the_warm_up_are_not_counted() -> None:
    run = recorded_run("penstock", 0.25)
    samples = run.score(URGENT, math.inf).samples
    assert len(samples) == 20
    assert min(each.completed_at for each in samples) >= STARTED_AT + WARMUP_SECONDS


def test_a_result_missing_at_the_end_counts_with_the_time_until_then() -> None:
    run = recorded_run("spark", 6.25)
    score = run.score(URGENT, math.inf)
    assert (score.results, score.missing) == (14, 6)
    assert run.ended_at is not None
    for sample in score.samples:
        if sample.missing:
            assert sample.latency_seconds == pytest.approx(run.ended_at - sample.completed_at)
            assert sample.latency_seconds < 6.25


def test_a_side_without_any_result_has_the_whole_time_as_its_latency() -> None:
    run = ShareRun(SIDES["spark"], 0.0)
    run.take({"event": "started", "at": STARTED_AT})
    run.take({"event": "source", "pipeline": URGENT.name, "created_ms": CREATED_MS})
    run.take({"event": "ended", "at": STARTED_AT + 10})
    score = run.score(URGENT, math.inf)
    assert (score.results, score.missing, score.rows_done, score.rows_due) == (0, 10, 0, 10_000)
    assert score.p50 == pytest.approx(5.0)
    assert score.share_in_time == 0.0


def test_a_result_that_comes_after_the_end_is_missing() -> None:
    run = ShareRun(SIDES["spark"], 0.0)
    run.take({"event": "started", "at": STARTED_AT})
    run.take({"event": "source", "pipeline": URGENT.name, "created_ms": CREATED_MS})
    run.take({"event": "ended", "at": STARTED_AT + 2})
    end = CREATED_MS // 1000 + 1.0
    batch = {"event": "batch", "pipeline": URGENT.name, "at": STARTED_AT + 3, "seconds_read": 2}
    run.take({**batch, "windows": [[end, 500]]})
    score = run.score(URGENT, math.inf)
    assert (score.results, score.rows_done) == (0, 0)


def test_rows_are_done_when_their_batch_is_delivered_and_the_rest_is_backlog() -> None:
    score = recorded_run("spark", 6.25).group("bulky")
    assert score.rows_due == 4 * 30 * 100_000
    assert score.rows_done + score.backlog_rows == score.rows_due
    assert 0 < score.share_done < 1


def test_before_the_warm_up_ends_the_figures_are_those_of_the_warm_up() -> None:
    run = ShareRun(SIDES["penstock"], WARMUP_SECONDS)
    assert math.isnan(run.score(URGENT, STARTED_AT).p50)
    run.take({"event": "started", "at": STARTED_AT})
    run.take({"event": "source", "pipeline": URGENT.name, "created_ms": CREATED_MS})
    assert len(run.score(URGENT, STARTED_AT + 5).samples) == 5
    assert len(run.score(URGENT, STARTED_AT + WARMUP_SECONDS + 2).samples) == 2


def test_a_missing_result_within_its_target_is_neither_in_time_nor_late() -> None:
    samples = (Sample("a", 0.0, 0.1), Sample("a", 1.0, 0.9), Sample("a", 2.0, 0.3, missing=True))
    assert Score("a", 0.8, samples, 0, 0).share_in_time == 0.5
    assert math.isnan(Score("a", 0.8, samples[2:], 0, 0).share_in_time)


def test_a_group_is_judged_as_one() -> None:
    one = Score("a", 0.8, (Sample("a", 0.0, 0.1),), 10, 20)
    other = Score("b", 0.8, (Sample("b", 0.0, 0.9), Sample("b", 1.0, 0.5)), 5, 5)
    both = total("urgent", [one, other])
    assert (both.p50, both.rows_done, both.rows_due, both.backlog_rows) == (0.5, 15, 25, 10)


def test_a_wrong_count_is_told() -> None:
    run = recorded_run("penstock", 0.25)
    assert run.wrong_counts == []
    end = CREATED_MS // 1000 + 100.0
    batch = {"event": "batch", "pipeline": URGENT.name, "at": STARTED_AT + 101, "seconds_read": 101}
    run.take({**batch, "windows": [[end, 999]]})
    assert run.wrong_counts == [f"urgent-1: window until {end:.0f} has 999 rows of 1000"]
