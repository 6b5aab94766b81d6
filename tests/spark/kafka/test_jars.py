"""Jars that are listed with their checksums, and those that are not there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.spark.kafka import jars
from penstock.spark.kafka.jars import BROKER, CONNECTOR, JarSet, NotInstalled, class_path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def one_jar(folder: Path, content: bytes) -> JarSet:
    listing = folder / "list.txt"
    listing.write_text(f"# one\n{hashlib.sha256(content).hexdigest()} org.example thing 1.0\n")
    return JarSet("thing", listing)


def bring(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """What Ivy would have brought."""

    def fetch(wanted: JarSet, scratch: Path, target: Path) -> None:
        target.mkdir()
        (target / wanted.jars[0].file).write_bytes(content)

    monkeypatch.setattr(jars, "_fetch", fetch)


def test_what_is_not_installed_is_refused_with_the_command(cache: Path) -> None:
    assert class_path() == ()
    with pytest.raises(NotInstalled) as caught:
        _ = CONNECTOR.paths
    assert str(caught.value) == (
        f"the jars of 'kafka' must be installed, but are not in {cache}: run `penstock install kafka` once"
    )


def test_jars_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = one_jar(tmp_path, b"bytes")
    bring(monkeypatch, b"bytes")
    assert wanted.install()
    assert wanted.paths[0].read_bytes() == b"bytes"
    bring(monkeypatch, b"others")
    assert not wanted.install()
    assert wanted.paths[0].read_bytes() == b"bytes"


def test_a_jar_that_is_not_the_one_tested_is_not_installed(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = one_jar(tmp_path, b"bytes")
    bring(monkeypatch, b"others")
    with pytest.raises(
        Exception, match=r"^thing-1\.0\.jar must have the SHA-256 .*, and nothing was installed$"
    ):
        wanted.install()
    assert not wanted.is_installed
    assert list(cache.iterdir()) == []


def test_another_list_is_another_folder(tmp_path: Path) -> None:
    assert one_jar(tmp_path, b"a").folder != one_jar(tmp_path, b"b").folder


def test_the_lists_name_versions_and_checksums() -> None:
    names = {jar.name: jar.version for jar in CONNECTOR.jars}
    assert "spark-sql-kafka-0-10_2.13" in names
    for jar in (*CONNECTOR.jars, *BROKER.jars):
        assert len(jar.sha256) == 64
        assert jar.version[0].isdigit()


def test_only_known_names_can_be_installed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["install", "rabbit"])
    assert "invalid choice: 'rabbit' (choose from" in capsys.readouterr().err
