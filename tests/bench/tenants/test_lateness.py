"""Each late result is divided into what it waited for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.tenants.made import job_run, made_run

from penstock.bench.tenants.lateness import late_results, told
from penstock.bench.tenants.load import Load
from penstock.bench.tenants.meter import Turn
from penstock.bench.tenants.runs import Run
from penstock.workloads.tenants.groups import bulk_jobs, urgent_jobs

URGENT, BULK = urgent_jobs(1)[0], bulk_jobs(1000.0, 1)[0]


def run_of(samples: list[tuple[float, float, bool]]) -> Run:
    """An urgent turn at 11.25, which waited for a bulk one that took 0.9 s in place of 0.5."""
    load = Load((URGENT, BULK))
    urgent = replace(
        job_run(URGENT, []),
        samples=tuple(samples),
        turns=(Turn(9.0, 4000, 1, 0.05, 0.05), Turn(11.25, 4000, 1, 0.5, 0.06)),
        fed=((9.9, 14, 9.95), (10.0, 15, 10.1)),
    )
    bulk = replace(job_run(BULK, []), turns=(Turn(9.2, 10, 1, 0.9, 0.9), Turn(10.35, 70_000, 1, 0.9, 0.5)))
    run = made_run("ours", load, [0.1])
    return replace(run, jobs=(urgent, bulk), cuts=(10, 4))


def test_a_late_result_tells_what_it_waited_for_and_behind_whom() -> None:
    (late,) = late_results(run_of([(9.0, 0.2, False), (10.0, 1.8, False)]))
    assert (late.job, late.at, late.behind) == ("urgent-1", 10.0, "bulk-1")
    assert late.fed_seconds == pytest.approx(0.1)
    assert late.waited_seconds == pytest.approx(1.15)
    assert (late.behind_seconds, late.behind_predicted_seconds) == (0.9, 0.5)
    assert late.turn_seconds == 0.5
    assert late.rest_seconds == pytest.approx(0.05)
    parts = late.fed_seconds + late.waited_seconds + late.turn_seconds + late.rest_seconds
    assert parts == pytest.approx(late.latency)


def test_a_result_that_never_came_waited_until_the_end() -> None:
    (late,) = late_results(run_of([(10.0, 0.5, True)]))
    assert late.missing
    assert late.waited_seconds == pytest.approx(0.4)
    assert late.turn_seconds == 0.0
    assert late.rest_seconds == pytest.approx(0.0)


def test_the_file_has_how_many_their_parts_and_how_often_cut_turns_overran() -> None:
    written = told(run_of([(9.0, 0.2, False), (10.0, 1.8, False)]))
    assert (written["results"], written["late"], written["cuts_overran_share"]) == (2, 1, 0.4)
    assert written["mean"]["waited_seconds"] == pytest.approx(1.15)
    assert [each["behind"] for each in written["worst"]] == ["bulk-1"]
    on_time = told(run_of([(9.0, 0.2, False)]))
    assert (on_time["late"], on_time["mean"], on_time["worst"]) == (0, {}, [])
