"""Spark's classes as a JVM has them in memory, in a file that other JVMs map: they start in less time.

Java's class data sharing. An archive is of one Java, one Spark and one class path; a JVM to which it is not
fit passes it over. `penstock cluster archive` makes them; clusters on this machine use them.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Literal

from penstock.spark.jar import cache_directory, java, penstock_jar
from penstock.spark.kafka.jars import class_path

Kind = Literal["worker", "executor"]
KINDS: tuple[Kind, ...] = ("worker", "executor")


def archive(kind: Kind) -> Path:
    """Where the archive for workers, or for executors, is kept."""
    return cache_directory() / f"{kind}-{_digest(kind)}.jsa"


def archive_option(kind: Kind) -> str:
    """The JVM's option that uses the archive, with a blank before it; nothing where there is none."""
    path = archive(kind)
    # Spark divides options at blanks.
    return f" -XX:SharedArchiveFile={path}" if path.exists() and " " not in str(path) else ""


def _digest(kind: Kind) -> str:
    import pyspark

    jvm = Path(shutil.which(java()) or java()).resolve()
    known = [
        pyspark.__file__,
        pyspark.__version__,
        str(jvm),
        str(jvm.stat().st_mtime_ns if jvm.exists() else 0),
    ]
    if kind == "executor":
        known += [str(path) for path in (penstock_jar(), *class_path())]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
