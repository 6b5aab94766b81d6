"""What a session on a cluster needs beside the preset, and what of the preset is for one machine only."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from penstock.errors import PenstockError
from penstock.spark.setting import LOGGING, Setting

MasterKind = Literal["local", "standalone", "yarn", "kubernetes"]
EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"
JARS = ".jars"
"""The folder of the state directory that holds what executors load."""
ONLY_HERE = ("spark.driver.host", "spark.driver.bindAddress")
"""Settings of the preset that keep an application on this machine."""


def master_kind(master: str) -> MasterKind:
    """Who runs the executors: this process, or a cluster manager."""
    if re.fullmatch(r"local(\[.*\])?", master):
        return "local"
    if master.startswith(("spark://", "local-cluster[")):
        return "standalone"
    if master == "yarn":
        return "yarn"
    if master.startswith("k8s://"):
        return "kubernetes"
    raise PenstockError(
        f"a master must be local, local[N], spark://HOST:PORT, yarn or k8s://URL, got {master!r}: "
        "Spark could not start"
    )


def is_on_this_machine(master: str) -> bool:
    """Whether a master can only be reached from this machine."""
    return re.match(r"(local|spark://(127\.|localhost\b))", master) is not None


def region_resource(region: str) -> str:
    """The name under which workers of a region offer themselves: Spark's own resources are its labels."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", region):
        raise PenstockError(
            f"a region must be named by letters, digits, - and _, got {region!r}: it labels Spark's workers"
        )
    return f"region_{region}"


def shared_jars(jars: Sequence[Path], state: Path) -> tuple[Path, ...]:
    """Copies in the state directory, where executors on other machines find them."""
    folder = state / JARS
    folder.mkdir(parents=True, exist_ok=True)
    for jar in jars:
        if not (folder / jar.name).exists():
            unfinished = folder / f"{jar.name}.{os.getpid()}"
            shutil.copyfile(jar, unfinished)
            unfinished.replace(folder / jar.name)
    return tuple(folder / jar.name for jar in jars)


def cluster_preset(master: str, region: str | None = None) -> dict[str, Setting]:
    """Settings for executors that are processes of their own."""
    chosen = {
        "spark.decommission.enabled": Setting(
            "true", "an executor that is sent away ends its tasks first, and gets no new ones"
        ),
        "spark.locality.wait": Setting(
            "100ms", "state is read again elsewhere in less time than Spark's 3 s of waiting for its executor"
        ),
        "spark.scheduler.revive.interval": Setting(
            "100ms", "a task whose wait for its executor is over is looked at once in this time, else in 1 s"
        ),
        EXECUTOR_OPTIONS: Setting(
            f"-XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m -Dlog4j2.configurationFile={LOGGING.as_uri()}",
            "executors of few cores need no threads to collect garbage; no noise in their logs",
        ),
        "spark.plugins": Setting(
            "penstock.WarmExecutors",
            "an executor loads the code of turns before it is given tasks, not with the first of them",
        ),
        "spark.speculation": Setting(
            "false", "a second copy of a slow task takes a slot that the scheduler has given to another stage"
        ),
    }
    if python_path := os.environ.get("PYTHONPATH"):
        chosen["spark.executorEnv.PYTHONPATH"] = Setting(
            python_path, "Python operators find on the workers what they find here"
        )
    if region is not None:
        chosen |= _of_region(master, region)
    return chosen


def _of_region(master: str, region: str) -> dict[str, Setting]:
    if master_kind(master) != "standalone":
        raise PenstockError(
            f"a region must be of a standalone cluster (spark://), got {region!r} with master {master!r}: "
            "there, name the queue or the node selector in Spark's own settings"
        )
    key = f"spark.executor.resource.{region_resource(region)}.amount"
    return {key: Setting("1", "only workers of the region offer it")}
