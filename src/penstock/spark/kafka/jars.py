"""The jars of optional connectors: fetched once by Spark's own Ivy, checked, and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from penstock.errors import PenstockError
from penstock.spark.jar import cache_directory, compiled_jar, java, penstock_jar, spark_jars

HERE = Path(__file__).parent
TRIES = 2


@dataclass(frozen=True)
class Jar:
    """One file of a Maven repository, and what it must be."""

    sha256: str
    organisation: str
    name: str
    version: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"


@dataclass(frozen=True)
class JarSet:
    """Jars that belong together, listed in a file with their checksums."""

    name: str
    listing: Path

    @cached_property
    def jars(self) -> tuple[Jar, ...]:
        lines = self.listing.read_text().splitlines()
        return tuple(Jar(*line.split()) for line in lines if line and not line.startswith("#"))

    @property
    def folder(self) -> Path:
        """Another list is another folder, so that no version is taken for another."""
        digest = hashlib.sha256(self.listing.read_bytes()).hexdigest()[:16]
        return cache_directory() / f"{self.name}-{digest}"

    @property
    def is_installed(self) -> bool:
        return self.folder.is_dir()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the jars are; refused with the command that installs them where they are not."""
        if not self.is_installed:
            raise NotInstalled(self)
        return tuple(self.folder / jar.file for jar in self.jars)

    def install(self) -> bool:
        """Fetches the jars if they are not there; whether it did. Needs a way to Maven Central, only then."""
        if self.is_installed:
            return False
        cache_directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_directory(), prefix=".fetching-") as scratch:
            fetched = Path(scratch, "jars")
            _fetch(self, Path(scratch), fetched)
            for jar in self.jars:
                _check(fetched / jar.file, jar)
            try:
                os.replace(fetched, self.folder)
            except OSError:
                if not self.is_installed:  # else another process was quicker, with the same jars
                    raise
        return True


class NotInstalled(PenstockError):
    """Jars that are needed and are not there."""

    def __init__(self, jars: JarSet):
        self.jars = jars.name
        super().__init__(
            f"the jars of {jars.name!r} must be installed, but are not in {cache_directory()}: "
            f"run `penstock install {jars.name}` once"
        )


CONNECTOR = JarSet("kafka", HERE / "connector.txt")
BROKER = JarSet("kafka-broker", HERE / "broker.txt")
SETS: Mapping[str, JarSet] = {each.name: each for each in (CONNECTOR, BROKER)}


def class_path() -> tuple[Path, ...]:
    """What a session needs for Kafka: the connector and our classes over it; nothing if not installed."""
    if not CONNECTOR.is_installed:
        return ()
    beside = (penstock_jar(), *CONNECTOR.paths)
    return (*CONNECTOR.paths, compiled_jar("penstock-kafka", HERE / "java", beside))


def _fetch(jars: JarSet, scratch: Path, target: Path) -> None:
    """Ivy's own settings say where jars come from: those of Spark's `--packages`."""
    wanted = scratch / "ivy.xml"
    wanted.write_text(_module(jars))
    [ivy] = spark_jars().glob("ivy-*.jar")
    command = [java(), "-cp", str(ivy), "org.apache.ivy.Main", "-ivy", str(wanted)]
    command += ["-cache", str(scratch / "cache"), "-retrieve", f"{target}/[artifact]-[revision].[ext]"]
    for attempt in range(TRIES):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and all((target / jar.file).is_file() for jar in jars.jars):
            return
        if attempt < TRIES - 1:
            shutil.rmtree(target, ignore_errors=True)
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    raise PenstockError(
        f"the jars of {jars.name!r} must come from Maven Central, but did not: nothing was installed. "
        "Ivy said:\n" + "\n".join(lines[-15:])
    )


def _module(jars: JarSet) -> str:
    """Each jar by itself: what it would bring along is in the list, or is PySpark's."""
    wanted = "\n".join(
        f'<dependency org="{jar.organisation}" name="{jar.name}" rev="{jar.version}" '
        'transitive="false" conf="default-&gt;master"/>'
        for jar in jars.jars
    )
    return (
        f'<ivy-module version="2.0"><info organisation="penstock" module="{jars.name}"/>\n'
        '<configurations><conf name="default"/></configurations>\n'
        f"<dependencies>\n{wanted}\n</dependencies></ivy-module>\n"
    )


def _check(path: Path, jar: Jar) -> None:
    came = hashlib.sha256(path.read_bytes()).hexdigest()
    if came != jar.sha256:
        raise PenstockError(
            f"{jar.file} must have the SHA-256 {jar.sha256}, has {came}: it is not the file that was tested, "
            "and nothing was installed"
        )
