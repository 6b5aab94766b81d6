"""The search for what plain Spark can bear."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.bench.tenants.made import made_run, mixed

from penstock.bench.result import BenchSettings
from penstock.bench.tenants.bench import chosen_times
from penstock.bench.tenants.runs import Run
from penstock.bench.tenants.stand import Stand, Times, bears, rows_done_per_second, search


class Ended:
    """A process that can be ended."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_sides_that_are_not_needed_any_more_are_ended(tmp_path: Path) -> None:
    stand = Stand(tmp_path, Times(1.0, 1.0), lambda text: None)
    made: dict[tuple[str, int], Any] = {
        key: Ended() for key in (("gate", 2), ("ours", 2), ("ours", 1), ("fifo", 1))
    }
    stand._workers |= made

    def alive() -> list[tuple[str, int]]:
        return [key for key, each in made.items() if not each.closed]

    stand.release("gate", "realtime")
    assert alive() == [("ours", 2), ("ours", 1), ("fifo", 1)]
    stand.release(slots=1)
    assert alive() == [("ours", 2)]
    stand.close()
    assert alive() == []


@pytest.mark.parametrize(
    ("limit", "found", "tried"),
    [
        (100, 100.0, [100, 110]),
        (125, 120.0, [100, 110, 120, 130]),
        (95, 90.0, [100, 90]),
        (55, 50.0, [100, 90, 80, 70, 60, 50]),
    ],
)
def test_the_highest_rate_held_is_found_in_steps_of_a_tenth(
    limit: float, found: float, tried: list[float]
) -> None:
    asked: list[float] = []

    def held(rate: float) -> bool:
        asked.append(rate)
        return rate <= limit

    assert search(100.0, held) == pytest.approx(found)
    assert asked == pytest.approx(tried)


def test_bulk_tenants_count_text_every_ten_seconds_or_as_asked_for_slide(tmp_path: Path) -> None:
    usual = Stand(tmp_path, Times(1.0, 1.0), lambda text: None)
    sliding = Stand(tmp_path, Times(1.0, 1.0), lambda text: None, sliding=True)
    for stand, payload, slide in ((usual, True, 10.0), (sliding, False, 1.0)):
        bulk = [job for job in stand.mixed(8000.0, 8).jobs if job.group == "bulk"]
        assert {(job.payload, job.slide_seconds, job.window_seconds) for job in bulk} == {
            (payload, slide, 10.0)
        }
        assert sum(job.rows_per_second for job in bulk) == 8000.0


def test_runs_are_warmed_up_for_a_minute_and_measured_for_two() -> None:
    times = chosen_times(BenchSettings(quick=False, json=Path("tenants.json")))
    assert (times.warmup, times.measured, times.bear) == (60.0, 120.0, 60.0)


def growing(seconds_a_minute: float) -> Run:
    """The backlog of one job grows so fast, and goes up and down with its batches."""
    run = made_run("fifo", mixed(1000), [1.0])
    trace = tuple(3.0 + second * seconds_a_minute / 60 + (second % 4) for second in range(60))
    jobs = [*run.jobs[:-1], replace(run.jobs[-1], backlog_by_second=trace)]
    return replace(run, jobs=tuple(jobs))


def test_a_backlog_that_grows_by_a_second_of_input_in_a_minute_is_too_much() -> None:
    assert bears(growing(0.5))
    assert not bears(growing(1.5))
    assert bears(growing(-3.0))


def test_rows_done_are_counted_after_the_warm_up() -> None:
    run = made_run("fifo", mixed(1000), [1.0])
    jobs = [
        replace(each, done_by_second=(1000.0,) * 4 + (10.0,) * 15 + (0.0,) * 5)
        if each.job.group == "bulk"
        else each
        for each in run.jobs
    ]
    # Four jobs with ten rows a second, up to the last batch that ended.
    assert rows_done_per_second(replace(run, jobs=tuple(jobs))) == pytest.approx(40.0)
