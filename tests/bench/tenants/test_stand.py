"""The search for what plain Spark can bear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.bench.tenants.made import made_run, mixed

from penstock.bench.result import BenchSettings
from penstock.bench.tenants.bench import chosen_times, described
from penstock.bench.tenants.load import FairSettings, Load
from penstock.bench.tenants.runs import Run
from penstock.bench.tenants.stand import Stand, Times, bears, rows_done_per_second, search
from penstock.errors import PenstockError


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


@dataclass
class MadeUp(Stand):
    """Its runs are made up: the p99 under FAIR by its settings, rows done by what came."""

    p99: Callable[[FairSettings], float] = lambda fair: 1.0
    most_rows: float = 1e9
    asked: list[tuple[str, Load, Times]] = field(default_factory=list)

    def _run(self, side: str, load: Load, slots: int, times: Times) -> Run:
        self.asked.append((side, load, times))
        run = made_run(side, load, [self.p99(load.fair)] * 100)
        rows = min(load.bulk_rows_per_second, self.most_rows) / 4
        return replace(run, jobs=tuple(replace(each, done_by_second=(rows,) * 24) for each in run.jobs))


def made_up(tmp_path: Path, **settings: Any) -> MadeUp:
    return MadeUp(tmp_path, Times(4.0, 20.0), lambda text: None, 1000.0, **settings)


def test_fair_pools_run_with_the_settings_that_serve_urgent_tenants_best(tmp_path: Path) -> None:
    stand = made_up(tmp_path, p99=lambda fair: 5.0 / fair.weight + (2.0 if fair.cap_seconds is None else 1.0))
    run = stand.run("fair", stand.mixed(500.0))
    assert run.load.fair == FairSettings(100, 1.0)
    stand.run("fair", stand.mixed(600.0))
    assert [str(each.load.fair) for each in stand.fair_runs] == [
        "weight 10, no cap",
        "weight 100, no cap",
        "weight 10, bulk batches of 1 s of input",
        "weight 100, bulk batches of 1 s of input",
    ]
    tried = stand.asked[:4]
    assert {(load.bulk_rows_per_second, times) for _, load, times in tried} == {(2000.0, Times(2.0, 10.0))}
    assert len(stand.asked) == 6, "searched once"
    told: Any = described(stand)["fair_settings"]
    assert [each["chosen"] for each in told] == [False, False, False, True]
    assert told[3]["p99 s"] == "1.05"
    unsearched = made_up(tmp_path, fair_tried=())
    assert unsearched.run("fair", unsearched.mixed(500.0)).load.fair == FairSettings()
    assert unsearched.run("fifo", unsearched.mixed(500.0)).load.fair == FairSettings()


def test_who_is_the_first_of_several_sides_goes_round(tmp_path: Path) -> None:
    stand, sides = made_up(tmp_path), ("fifo", "ours")
    for _ in range(3):
        assert [run.side for run in stand.compare(sides, stand.mixed(500.0))] == ["fifo", "ours"]
    assert [side for side, _, _ in stand.asked] == ["fifo", "ours", "ours", "fifo", "fifo", "ours"]


def test_a_flood_that_is_no_flood_is_doubled(tmp_path: Path) -> None:
    stand = made_up(tmp_path, most_rows=1_200_000.0)
    assert stand.able("fifo", stand.mixed) == pytest.approx(1_200_000)
    assert [load.bulk_rows_per_second for _, load, _ in stand.asked] == pytest.approx([1e6, 2e6])


def test_a_rate_that_is_not_among_those_tried_is_refused() -> None:
    with pytest.raises(PenstockError) as refused:
        search(100.0, lambda rate: False)
    assert str(refused.value) == (
        "what plain Spark can bear must lie within the rates tried, but it fell behind at all of them, "
        "from 100 to 20 bulk rows/s: give it by --capacity"
    )
    with pytest.raises(PenstockError, match="it held all of them, from 100 to 300 bulk rows/s"):
        search(100.0, lambda rate: True)


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
