"""A real master and real workers: pipelines on them, while workers come, leave and are killed."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from penstock.bench.crash import Life
from penstock.bench.crash_trace import Comparison, TraceSettings, compare, expected, trace_lines
from penstock.bench.crash_worker import found, write_trace
from penstock.cli.main import main
from penstock.spark.class_archive import archive_path
from penstock.spark.cluster.daemon import ClusterError, Daemon
from penstock.spark.cluster.standalone import NICENESS, StandaloneCluster, WorkerSize

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]
LIMIT_SECONDS = 180.0
ROWS_PER_SECOND = 400.0
SLOWLY, QUICKLY = "60", "4000"
"""Rows a second, so that rows are left when the driver is killed, and all come soon after that."""
TRACE = TraceSettings(int(20 * ROWS_PER_SECOND), ROWS_PER_SECOND, seed=3)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    assert main(["cluster", "up", "--workers", "2", "--dir", str(folder)]) == 0
    running = StandaloneCluster(folder)
    # Of another region: the driver of these tests must not get it.
    assert main(["cluster", "add", "--region", "other", "--name", "other", "--dir", str(folder)]) == 0
    yield running
    assert main(["cluster", "down", "--dir", str(folder)]) == 0


def test_status_shows_the_workers_that_up_has_started(
    cluster: StandaloneCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "status", "--dir", str(cluster.folder)]) == 0
    shown = capsys.readouterr().out
    assert f"master  {cluster.url}\n" in shown
    assert [line.split()[:5] for line in shown.splitlines() if " up " in line] == [
        ["worker-1", "default", "up", "1", "0"],
        ["worker-2", "default", "up", "1", "0"],
        ["other", "other", "up", "1", "0"],
    ]


def test_workers_leave_the_processors_to_drivers_first(cluster: StandaloneCluster) -> None:
    behind = psutil.Process().nice() + NICENESS
    assert [psutil.Process(each.pid).nice() for each in cluster.workers()] == [behind] * 3


def test_workers_start_with_the_archive_of_classes(cluster: StandaloneCluster) -> None:
    if not archive_path().exists():
        pytest.skip("no archive was made: penstock install class-archive")
    for worker in cluster.workers():
        assert str(archive_path()) in maps(worker.pid)


def maps(process: int) -> set[str]:
    return {each.path for each in psutil.Process(process).memory_maps()}


def test_a_second_cluster_in_the_same_place_is_refused(cluster: StandaloneCluster) -> None:
    with pytest.raises(ClusterError) as refused:
        cluster.up([WorkerSize()])
    assert str(refused.value) == (
        f"a cluster must be down before it comes up, but one runs in {cluster.folder}: "
        "add workers to it, or take it down"
    )
    assert [worker.state for worker in cluster.status()] == ["up", "up", "up"]


def test_workers_and_then_the_driver_are_killed_and_every_row_is_there_once(
    cluster: StandaloneCluster, tmp_path: Path
) -> None:
    lines = trace_lines(TRACE)
    write_trace(tmp_path, lines)
    first = Life(tmp_path, (SLOWLY, str(cluster.folder)), "tests.spark.cluster.driver")
    try:
        # Those are asked that have an executor by then.
        assert re.fullmatch(
            "refused the state directory must be one that every worker reads and writes, got "
            "'/proc/self/cwd/unreachable', which (worker-1|worker-2|worker-1, worker-2) cannot: queues and "
            "checkpoints would be missing there. Name a shared or mounted directory under the same path on "
            "all of them",
            first.until("refused", LIMIT_SECONDS),
        )
        first.until("turn", LIMIT_SECONDS)
        _kill_in_a_turn(cluster.worker("worker-2"), first)
        first.until("slots-1", LIMIT_SECONDS)
        first.until("turn", LIMIT_SECONDS)
        cluster.add(WorkerSize())
        first.until("slots-2", LIMIT_SECONDS)
        (tmp_path / "go").touch()
        _check_steps(first)
        first.kill()
    finally:
        first.end()
    second = Life(tmp_path, (QUICKLY, str(cluster.folder)), "tests.spark.cluster.driver")
    try:
        second.until("turn", LIMIT_SECONDS)
        second.until("drained", LIMIT_SECONDS)
    finally:
        second.end()
    assert compare(expected(lines), found(tmp_path)) == Comparison(lost=0, doubled=0, wrong_windows=0)
    told = [log.read_text() for log in cluster.folder.glob("work/*/app-*/*/stderr")]
    assert len(told) > 2
    assert not any("begins cold" in each for each in told)


def _kill_in_a_turn(worker: Daemon, driver: Life) -> None:
    """Lets a task hang on a stopped executor, whose turn cannot end, then kills both with SIGKILL."""
    (executor,) = worker.executors
    assert not archive_path().exists() or str(archive_path()) in maps(executor.pid)
    executor.send_signal(signal.SIGSTOP)
    driver.until("hangs", LIMIT_SECONDS)
    os.kill(worker.pid, signal.SIGKILL)
    executor.kill()


def _check_steps(driver: Life) -> None:
    assert driver.until("step", LIMIT_SECONDS) == "step grown"
    assert driver.until("step", LIMIT_SECONDS) == (
        "step asked back: node 'extra' must only be hidden to come back, but was sent away: "
        "Spark takes no decommissioning back"
    )
    assert driver.until("step", LIMIT_SECONDS) == "step shrunk"
    assert (
        driver.until("step", LIMIT_SECONDS) == "step used by crash.count crash.double crash.once crash.parse"
    )
    assert driver.until("step", LIMIT_SECONDS) == "step allocated"


def test_down_ends_all_that_was_started_and_nothing_else(
    cluster: StandaloneCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = [worker.pid for worker in cluster.workers()]
    assert main(["cluster", "down", "--dir", str(cluster.folder)]) == 0
    assert capsys.readouterr().out.startswith("ended: master, worker-1, ")
    assert not any(psutil.pid_exists(pid) and _lives(pid) for pid in ours)
    assert main(["cluster", "status", "--dir", str(cluster.folder)]) == 2


def _lives(pid: int) -> bool:
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
