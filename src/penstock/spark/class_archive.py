"""Spark's classes as a JVM has them in memory, in a file: one that starts with it reads few jars."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.errors import PenstockError
from penstock.spark.jar import cache_directory, java, penstock_jar, spark_jars
from penstock.spark.kafka.jars import class_path

LIMIT_SECONDS = 180.0


def our_jars() -> tuple[Path, ...]:
    """What is put before Spark's own jars."""
    return (penstock_jar(), *class_path())


def archive_path() -> Path:
    """Where the archive is, or would be: beside the packages it is made of.

    Its name is made of what its JVM looks at: Java, and the jars with their times.
    """
    java_itself = Path(os.path.realpath(shutil.which(java()) or java()))
    parts = [f"{path} {_changed(path)}" for path in (java_itself, spark_jars(), *our_jars())]
    names = os.pathsep.join(parts)
    return _folder() / f"penstock-classes-{hashlib.sha256(names.encode()).hexdigest()[:16]}.jsa"


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def _folder() -> Path:
    return Path(sys.prefix) if sys.prefix != sys.base_prefix else cache_directory()


def archive_options() -> str:
    """For a JVM whose class path begins with our jars; nothing while there is no archive.

    A JVM of another version, or with other jars, goes on without it.
    """
    archive = archive_path()
    if not archive.exists():
        return ""
    return f'"-XX:SharedArchiveFile={archive}" -Xlog:cds=off -Xlog:cds+dynamic=off'


def make_archive() -> bool:
    """Makes the archive if it is not there; whether it did. It takes some twenty seconds, and 200 MB."""
    archive = archive_path()
    if archive.exists():
        return False
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".classes-") as scratch:
            made = Path(scratch) / archive.name
            _train(made)
            _remove_old(archive.parent)
            made.replace(archive)
    except (OSError, subprocess.SubprocessError) as error:
        raise PenstockError(
            f"Spark must run once to make an archive of its classes, but: {error}; starts take longer without"
        ) from error
    return True


def _train(made: Path) -> None:
    command = [sys.executable, "-m", "penstock.spark.class_training", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    if done.returncode != 0 or not made.exists():
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise subprocess.SubprocessError(said or "its JVM wrote none")


def _remove_old(folder: Path) -> None:
    """All but the newest: what runs now may start more of its kind."""
    found = sorted(folder.glob("penstock-classes-*.jsa"), key=_changed)
    for old in found[:-1]:
        old.unlink(missing_ok=True)
