"""Processes are found again by their records, and only those that were started are ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from penstock.cli.main import main
from penstock.spark.cluster.daemon import ClusterError, Daemon, Records, launch
from penstock.spark.cluster.standalone import StandaloneCluster
from penstock.spark.feeders import wait_for


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def daemon(process: subprocess.Popen[bytes], earlier_seconds: float = 0.0) -> Daemon:
    started = psutil.Process(process.pid).create_time() - earlier_seconds
    return Daemon("worker-1", "worker", process.pid, started, 1, "1g", "default")


def test_a_process_is_ended_by_its_record(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    Records(tmp_path).write(daemon(sleeper))
    (found,) = Records(tmp_path).all()
    found.end()
    assert found.process is None


def test_a_process_that_got_the_id_of_one_that_died_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    before = daemon(sleeper, earlier_seconds=3600.0)
    assert before.process is None
    before.end()
    before.decommission()
    assert sleeper.poll() is None


def test_workers_get_names_that_no_other_has(tmp_path: Path) -> None:
    records = Records(tmp_path)
    assert [records.take_name(), records.take_name("edge-7"), records.take_name()] == [
        "worker-1",
        "edge-7",
        "worker-2",
    ]
    with pytest.raises(ClusterError) as refused:
        records.take_name("edge-7")
    assert (
        str(refused.value) == "a worker must have a name of its own, got 'edge-7' again: nothing was started"
    )


def test_the_name_of_a_worker_that_has_died_can_be_taken_again(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    records = Records(tmp_path)
    records.write(daemon(sleeper))
    with pytest.raises(ClusterError):
        records.take_name("worker-1")
    records.write(daemon(sleeper, earlier_seconds=3600.0))
    assert records.take_name("worker-1") == "worker-1"


def test_a_record_that_is_not_complete_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "worker-1.json").write_text('{"name": "worker-1", ')
    assert Records(tmp_path).all() == []


def test_a_process_that_has_ended_is_waited_for_at_once(tmp_path: Path) -> None:
    pid = launch("no.such.Class", [], {"SPARK_DAEMON_MEMORY": "64m"}, tmp_path / "log")
    assert wait_for(lambda: not psutil.pid_exists(pid), 60.0)


def test_a_worker_that_dies_while_it_starts_is_told_and_the_others_are_not_looked_at(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Daemon, "executors", property(lambda self: pytest.fail("it was looked at")))
    Records(tmp_path).write(daemon(sleeper, earlier_seconds=3600.0))
    with pytest.raises(ClusterError) as refused:
        StandaloneCluster(tmp_path).wait_until_up("worker-1")
    assert str(refused.value) == ("worker 'worker-1' must stay up, but its process has ended: it left no log")


def test_where_no_cluster_runs_the_commands_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "status", "--dir", str(tmp_path)]) == 2
    said = f"penstock: no cluster runs in {tmp_path}: start one with `penstock cluster up`\n"
    assert capsys.readouterr().err == said
    assert main(["cluster", "remove", "worker-9", "--dir", str(tmp_path)]) == 2
    said = f"penstock: no worker 'worker-9' is in the cluster in {tmp_path}, of: none\n"
    assert capsys.readouterr().err == said
    assert main(["cluster", "down", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no cluster runs in {tmp_path}\n"
