"""Each side runs a small load from feeder to figures, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from penstock.bench.tenants.load import Load, noop_load
from penstock.bench.tenants.stand import Stand, Times
from penstock.workloads.tenants.groups import bulk_jobs, urgent_jobs

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]
TIMES = Times(warmup=16.0, measured=6.0)


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Its processes go on from test to test."""
    with closing(Stand(tmp_path_factory.mktemp("stand"), TIMES, lambda text: None)) as made:
        yield made


@pytest.mark.parametrize("side", ["fifo", "ours"])
def test_a_side_delivers_every_window_with_the_right_value(stand: Stand, side: str) -> None:
    bulk = replace(bulk_jobs(2000, 1)[0], window_seconds=2.0)
    run = stand.run(side, Load((*urgent_jobs(1), bulk)))
    # A wrong value would have been refused. How late results are is not for a test to say.
    assert len(run.urgent.latencies) == 6
    assert run.urgent.missing < 6
    assert run.bulk.jobs[0].latencies
    assert run.bulk.offered == 2000 * 6
    assert 0 < sum(run.bulk.jobs[0].done_by_second) <= 2000 * 22
    if side == "ours":
        assert run.overhead_share > 0.0
        assert run.window_turns


def test_real_time_mode_runs_what_spark_takes_and_tells_why_it_refuses_the_rest(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stand, "times", Times(warmup=2.0, measured=4.0))
    run = stand.real_time(Load(urgent_jobs(1)))
    assert run is not None
    assert (len(run.urgent.latencies), run.urgent.missing) == (4, 0), "each window has had its right value"
    assert stand.real_time(Load(urgent_jobs(1, query="ipq4"))) is None
    append, update, totals = stand.real_time_said["ipq1"].values()
    assert append.startswith("[STREAMING_REAL_TIME_MODE.OUTPUT_MODE_NOT_SUPPORTED] ")
    assert "possible 'correctness' issue" in update
    assert totals == ""
    # It reads its source twice, for views and for clicks.
    said = list(stand.real_time_said["ipq4"].values())
    assert said[0] == append
    assert said[1].startswith("[STREAMING_REAL_TIME_MODE.IDENTICAL_SOURCES_IN_UNION_NOT_SUPPORTED] ")


def test_tenants_that_do_nothing_have_their_rows_counted(stand: Stand) -> None:
    run = stand.run("ours", noop_load(6), times=Times(warmup=6.0, measured=6.0))
    assert run.urgent.latencies == []
    assert run.urgent.done == pytest.approx(run.urgent.offered, abs=6)
    assert run.urgent.offered == pytest.approx(6 * 2, abs=6)
    # The next load runs in the same process, and begins from nothing.
    again = stand.run("ours", noop_load(3), times=Times(warmup=3.0, measured=6.0))
    assert again.urgent.done == pytest.approx(again.urgent.offered, abs=3)
    assert again.urgent.offered == pytest.approx(3 * 2, abs=3)
