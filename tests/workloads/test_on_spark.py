"""The shared pool on Spark, until its first results."""

import pytest

from penstock.workloads.share_process import SideProcess
from penstock.workloads.share_run import ShareRun
from penstock.workloads.shared_pool import LOADS, SIDES

WANTED_RESULTS = 3


@pytest.mark.spark
@pytest.mark.slow
def test_urgent_results_come_with_exact_counts_and_sources_are_known() -> None:
    run = ShareRun(SIDES["penstock"], 0.0, LOADS)
    with SideProcess("penstock", 600.0) as process:
        for event in process.events(1.0):
            if event is None:
                continue
            run.take(event)
            assert run.error == ""
            if event["event"] != "batch" or run.started_at is None:
                continue
            score = run.score(LOADS[0], event["at"])
            if score.results >= WANTED_RESULTS:
                break
    assert score.results >= WANTED_RESULTS
    assert score.rows_done >= WANTED_RESULTS * LOADS[0].rows_per_second
    assert run.wrong_counts == []
