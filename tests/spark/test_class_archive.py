"""A JVM takes Spark's classes from the archive, and one that cannot use it goes on without a word."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from penstock.cli.main import main
from penstock.errors import PenstockError
from penstock.spark import class_archive
from penstock.spark.class_archive import archive_options, archive_path, make_archive, our_jars
from penstock.spark.jar import spark_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "org.apache.spark.deploy.master.Master"


def started(our: Sequence[Path], options: str, log: Path) -> tuple[str, str]:
    """What a JVM says that Spark starts to tell of its master, and where that class comes from by its log."""
    environment = {
        "SPARK_HOME": str(spark_jars().parent),
        "SPARK_DAEMON_CLASSPATH": os.pathsep.join(map(str, our)),
        "SPARK_DAEMON_JAVA_OPTS": f"{options} -Xlog:class+load:file={log}",
    }
    done = subprocess.run(
        ["bash", str(spark_jars().parent / "bin" / "spark-class"), MASTER, "--help"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    [line] = [line for line in log.read_text().splitlines() if f" {MASTER} " in line]
    return done.stdout + done.stderr, line.partition("source: ")[2]


@pytest.mark.alone
def test_classes_come_from_an_archive_that_was_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(class_archive.sys, "prefix", str(tmp_path))
    for number in range(3):
        (tmp_path / f"penstock-classes-{number}.jsa").touch()
        os.utime(tmp_path / f"penstock-classes-{number}.jsa", (number, number))
    assert archive_options() == ""
    _, source = started(our_jars(), "", tmp_path / "without.log")
    assert source.endswith(".jar")
    assert main(["install", "class-archive"]) == 0
    assert "class-archive: installed, " in capsys.readouterr().out
    assert set(tmp_path.glob("*.jsa")) == {archive_path(), tmp_path / "penstock-classes-2.jsa"}
    _, source = started(our_jars(), archive_options(), tmp_path / "with.log")
    assert source == "shared objects file (top)"
    assert not make_archive()
    # Another jar in front than the archive was made with: no use, and no warning.
    other = Path(shutil.copy(our_jars()[0], tmp_path / "other.jar"))
    said, source = started([other], archive_options(), tmp_path / "other.log")
    assert source.endswith(".jar")
    assert "archive" not in said


@pytest.mark.spark
def test_a_session_starts_with_the_archive(spark: SparkSession) -> None:
    if not archive_path().exists():
        pytest.skip("no archive was made: penstock install class-archive")
    process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    assert str(archive_path()) in {each.path for each in psutil.Process(process.pid).memory_maps()}


def test_an_archive_that_cannot_be_made_is_told_with_what_java_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(class_archive.sys, "executable", shutil.which("false"))
    with pytest.raises(
        PenstockError, match="must run once to make an archive of its classes, but: its JVM wrote"
    ):
        make_archive()
    assert list(tmp_path.iterdir()) == []
