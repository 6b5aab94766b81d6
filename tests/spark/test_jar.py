from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.spark import jar


def test_the_jar_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    first = jar.penstock_jar()
    written = first.stat().st_mtime_ns
    names = zipfile.ZipFile(first).namelist()
    sources = {
        source.relative_to(jar.SOURCES).with_suffix(".class") for source in jar.SOURCES.rglob("*.java")
    }
    assert sources <= {Path(name) for name in names}

    def refuse(*command: object, **_: object) -> None:
        raise AssertionError(f"no process was to start, got {command}")

    monkeypatch.setattr(subprocess, "run", refuse)
    assert jar.penstock_jar() == first
    assert first.stat().st_mtime_ns == written
    assert [path.name for path in tmp_path.iterdir()] == [first.name]


def test_classes_that_do_not_compile_leave_no_jar_and_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jar, "SOURCES", tmp_path / "java")
    broken = tmp_path / "java" / "penstock" / "Broken.java"
    broken.parent.mkdir(parents=True)
    broken.write_text("package penstock; public class Broken { int }")
    with pytest.raises(PenstockError, match=r"must compile against the installed Spark, but: .*Broken"):
        jar.penstock_jar()
    assert list((tmp_path / "cache").iterdir()) == []
