"""Archives of classes: used where they are, and made by a cluster of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.cluster.class_archive import KINDS, archive, archive_option
from penstock.spark.cluster.settings import JAVA_OPTIONS, cluster_preset
from penstock.spark.cluster.standalone import StandaloneCluster, WorkerSize


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_archive_is_used_where_there_is_one(cache: Path) -> None:
    assert archive_option("worker") == ""
    archive("worker").parent.mkdir(exist_ok=True)
    archive("worker").touch()
    assert archive_option("worker") == f" -XX:SharedArchiveFile={archive('worker')}"
    assert archive("worker") != archive("executor")


def test_an_archive_whose_path_has_a_blank_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "a cache"))
    archive("worker").parent.mkdir()
    archive("worker").touch()
    assert archive_option("worker") == ""


def test_executors_elsewhere_know_of_no_archive_here(cache: Path) -> None:
    archive("executor").parent.mkdir(exist_ok=True)
    archive("executor").touch()
    assert "SharedArchiveFile" in cluster_preset("spark://127.0.0.1:7077")[JAVA_OPTIONS].value
    assert "SharedArchiveFile" not in cluster_preset("spark://cluster:7077")[JAVA_OPTIONS].value


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.alone
def test_a_worker_starts_from_the_archive_that_a_command_makes(cache: Path, tmp_path: Path) -> None:
    # In a process of its own: one session lives in each.
    subprocess.run([sys.executable, "-m", "penstock", "cluster", "archive"], check=True, timeout=300)
    assert all(archive(kind).stat().st_size > 10_000_000 for kind in KINDS)
    cluster = StandaloneCluster(tmp_path / "cluster")
    try:
        cluster.up([WorkerSize()])
        [worker] = cluster.workers()
        assert str(archive("worker")) in Path(f"/proc/{worker.pid}/maps").read_text()
    finally:
        cluster.down()
