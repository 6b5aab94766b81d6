"""Messages are handed over when they are due, each once, as the batch computation makes them again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from penstock.bench.tenants.feeder import Feeder, Part, groups_of
from penstock.spark.feeders import wait_for
from penstock.workloads.tenants import AdEvents, in_ticks, messages_of, urgent_jobs

JOBS = tuple(replace(job, sources=16, rows_per_second=160.0) for job in urgent_jobs(2))
SCHEDULES = {job.name: in_ticks(messages_of(job, 2.0)) for job in JOBS}


def test_a_tick_of_a_job_is_one_group_and_groups_come_by_time() -> None:
    groups = groups_of(SCHEDULES)
    assert [group.due for group in groups] == sorted(group.due for group in groups)
    assert len({(group.due, group.job) for group in groups}) == len(groups)
    assert {len(group.messages) for group in groups} == {1, 2}
    for job in JOBS:
        fed = [message for group in groups if group.job == job.name for message in group.messages]
        assert fed == SCHEDULES[job.name]


def test_rows_come_when_they_are_due_and_are_those_of_the_seed() -> None:
    got: list[tuple[str, float, Sequence[Part], float]] = []
    feeder = Feeder(JOBS, SCHEDULES, lambda job, due, parts: got.append((job, due, parts, time.time())))
    base = time.time() - 1.5
    feeder.start(base)
    assert wait_for(lambda: len(got) == len(groups_of(SCHEDULES)), 10)
    feeder.stop()
    assert feeder.error is None
    assert all(at >= due for _, due, _, at in got)
    assert feeder.lag_seconds >= 1.0
    own = [part for job, _, parts, _ in got if job == "urgent-1" for part in parts]
    events = AdEvents(JOBS[0].seed, JOBS[0].events_drawn)
    again = [
        (each.source, events.rows(each.rows, base + each.begin, base + each.end, each.source))
        for each in SCHEDULES["urgent-1"]
    ]
    assert [source for source, _ in own] == [source for source, _ in again]
    assert pa.concat_tables([rows for _, rows in own]).equals(pa.concat_tables([rows for _, rows in again]))
    assert sum(rows for _, rows in feeder.offered["urgent-2"]) == 320
    assert feeder.offered["urgent-2"][0][0] == pytest.approx(base + 0.1)
    fed = feeder.fed["urgent-1"]
    assert [(due, source) for due, source, _ in fed] == [
        (each.due, each.source) for each in SCHEDULES["urgent-1"]
    ]
    assert all(at >= due for due, _, at in fed), "seconds since the run began, as dues are"
    assert fed[0][2] == pytest.approx(1.5, abs=1.0)


def test_what_goes_wrong_in_the_thread_is_kept() -> None:
    def refuse(job: str, due: float, parts: Sequence[Part]) -> None:
        raise OSError("the disk is full")

    feeder = Feeder(JOBS, SCHEDULES, refuse)
    feeder.start(time.time() - 10)
    assert wait_for(lambda: feeder.error is not None, 5)
    assert str(feeder.error) == "the disk is full"
