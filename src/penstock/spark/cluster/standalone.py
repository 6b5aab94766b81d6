"""A Spark standalone cluster on this machine: processes of PySpark's own distribution."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psutil

from penstock.spark.class_archive import archive_options, our_jars
from penstock.spark.cluster.daemon import ClusterError, Daemon, Records, launch
from penstock.spark.cluster.settings import region_resource
from penstock.spark.feeders import wait_for

MASTER_CLASS = "org.apache.spark.deploy.master.Master"
WORKER_CLASS = "org.apache.spark.deploy.worker.Worker"
HOST = "127.0.0.1"
DEFAULT_REGION = "default"
START_SECONDS = 120.0
DRAIN_SECONDS = 60.0
POLL_SECONDS = 0.2
START_POLL_SECONDS = 0.5
NICENESS = 5
"""Of workers and their executors: to start them takes seconds of a processor, which running drivers need."""
APPLICATIONS = 64
"""Executors of so many applications find place on a worker, as far as its region's label goes."""

WorkerState = Literal["starting", "up", "leaving", "dead"]


@dataclass(frozen=True)
class WorkerSize:
    """What a worker offers, and where."""

    cores: int = 1
    region: str = DEFAULT_REGION
    memory: str = "1g"

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise ClusterError(f"a worker must have at least 1 core, got {self.cores}: it could run no task")
        if not re.fullmatch(r"[1-9][0-9]*[mg]", self.memory):
            raise ClusterError(
                f"a worker's memory must be such as 512m or 2g, got {self.memory!r}: nothing was started"
            )
        region_resource(self.region)


@dataclass(frozen=True)
class WorkerStatus:
    """A worker as it is now."""

    name: str
    region: str
    cores: int
    used: int
    memory: str
    state: WorkerState
    pid: int
    executors: int


class StandaloneCluster:
    """A cluster whose processes are told of in a folder, so that any process may look after it.

    It ends what was started here and nothing else. Everything listens on the loopback address alone, without
    a password: whoever may log in to this machine may use it.
    """

    def __init__(self, folder: Path):
        self.folder = folder.absolute()
        self._records = Records(self.folder)
        self._lock = threading.Lock()

    def up(self, workers: Sequence[WorkerSize], limit_seconds: float = START_SECONDS) -> str:
        """Starts a master and workers; returns the master's address when all are registered."""
        if self._records.named("master") is not None and self._master.process is not None:
            raise ClusterError(
                f"a cluster must be down before it comes up, but one runs in {self.folder}: "
                "add workers to it, or take it down"
            )
        self._clear()
        try:
            self._start_master()
            url = self._wait_for_url(limit_seconds)
            names = [self.add(size) for size in workers]
            for name in names:
                self.wait_until_up(name, limit_seconds)
        except BaseException:
            self.down()
            raise
        return url

    @property
    def url(self) -> str:
        """The master's address, such as spark://127.0.0.1:7077."""
        found = self._logged(r"Starting Spark master at (spark://\S+)")
        if found is None or self._master.process is None:
            raise ClusterError(f"no cluster runs in {self.folder}: start one with `penstock cluster up`")
        return found

    @property
    def page(self) -> str:
        """The address of the master's page."""
        port = self._logged(r"'MasterUI' on port (\d+)")
        if port is None:
            raise ClusterError(f"the master in {self.folder} has no page yet: it is still starting")
        return f"http://{HOST}:{port}"

    def add(self, size: WorkerSize, name: str = "") -> str:
        """Starts a worker and returns its name at once; it registers some seconds later."""
        url = self.url
        with self._lock:
            name = self._records.take_name(name)
        try:
            pid = self._launch_worker(name, size, url)
            worker = Daemon(name, "worker", pid, _started(pid), size.cores, size.memory, size.region)
        except BaseException:
            self._records.remove(name)
            raise
        self._records.write(worker)
        return name

    def remove(self, name: str, drain_seconds: float = DRAIN_SECONDS) -> bool:
        """Lets a worker's executors end their tasks, then ends it; whether they left by themselves."""
        worker = self.worker(name)
        self._records.write(replace(worker, leaving=True))
        worker.decommission()
        drained = wait_for(lambda: not worker.executors, drain_seconds, POLL_SECONDS)
        worker.end()
        self._forget(worker)
        return drained

    def down(self) -> list[str]:
        """Ends all that was started here, workers first; their names."""
        daemons = self._records.all()
        for each in reversed(daemons):
            each.end()
        for each in daemons:
            self._forget(each)
        return [each.name for each in daemons]

    def worker(self, name: str) -> Daemon:
        """The worker of that name; refuses one that is not of this cluster."""
        found = self._records.named(name)
        if found is None or found.kind != "worker":
            known = ", ".join(each.name for each in self.workers()) or "none"
            raise ClusterError(f"no worker {name!r} is in the cluster in {self.folder}, of: {known}")
        return found

    def workers(self) -> list[Daemon]:
        return [each for each in self._records.all() if each.kind == "worker"]

    def status(self) -> list[WorkerStatus]:
        """All workers that were started here, those that have died included."""
        seen = self._registered()
        return [self._status(each, seen) for each in self.workers()]

    def wait_until_up(self, name: str, limit_seconds: float = START_SECONDS) -> None:
        """Returns when the master knows the worker."""

        def registered() -> bool:
            # Of this one alone: looking at all processes of all workers would slow down their start.
            worker = self.worker(name)
            if worker.process is None:
                raise ClusterError(
                    f"worker {name!r} must stay up, but its process has ended: {self._tail(name)}"
                )
            port = self._port(name)
            return port != 0 and port in self._registered()

        if not wait_for(registered, limit_seconds, START_POLL_SECONDS):
            raise ClusterError(f"worker {name!r} must register within {limit_seconds:g} s, but did not")

    def _status(self, worker: Daemon, seen: dict[int, int]) -> WorkerStatus:
        state: WorkerState = "up"
        used = 0
        if worker.process is None:
            state = "dead"
        elif worker.leaving:
            state = "leaving"
        elif (port := self._port(worker.name)) not in seen:
            state = "starting"
        else:
            used = seen[port]
        executors = len(worker.executors)
        return WorkerStatus(
            worker.name, worker.region, worker.cores, used, worker.memory, state, worker.pid, executors
        )

    def _registered(self) -> dict[int, int]:
        """The ports of the workers that the master counts as alive, with the cores in use."""
        try:
            with urllib.request.urlopen(f"{self.page}/json/", timeout=10) as answer:
                workers = json.load(answer)["workers"]
        except (OSError, ValueError, ClusterError):
            return {}
        return {each["port"]: each["coresused"] for each in workers if each["state"] == "ALIVE"}

    def _port(self, name: str) -> int:
        found = _last_match(self._log(name), r"Starting Spark worker \S+:(\d+) with")
        return int(found) if found else 0

    @property
    def _master(self) -> Daemon:
        return self._records.named("master") or Daemon("master", "master", 0, 0.0)

    def _start_master(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        arguments = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        # However often executors are lost, their application stays.
        options = "-Dspark.master.rest.enabled=false -Dspark.deploy.maxExecutorRetries=-1"
        pid = launch(MASTER_CLASS, arguments, {**_small(), "SPARK_MASTER_OPTS": options}, self._log("master"))
        self._records.write(Daemon("master", "master", pid, _started(pid)))

    def _launch_worker(self, name: str, size: WorkerSize, url: str) -> int:
        work = self.folder / "work" / name
        work.mkdir(parents=True, exist_ok=True)
        resource = region_resource(size.region)
        label = {"id": {"componentName": "spark.worker", "resourceName": resource}}
        places = [str(number) for number in range(APPLICATIONS)]
        (work / "resources.json").write_text(json.dumps([{**label, "addresses": places}]))
        options = (
            "-Dspark.decommission.enabled=true "
            f"-Dspark.worker.resource.{resource}.amount={APPLICATIONS} "
            f"-Dspark.worker.resourcesFile={work / 'resources.json'}"
        )
        environment = {
            **_small(),
            "SPARK_WORKER_OPTS": options,
            "SPARK_LOCAL_DIRS": str(work),
            "PYSPARK_PYTHON": sys.executable,
            # Executors inherit these, and tell them to their application.
            "SPARK_EXECUTOR_ATTRIBUTE_NODE": name,
            "SPARK_EXECUTOR_ATTRIBUTE_REGION": size.region,
        }
        arguments = ["--host", HOST, "--port", "0", "--webui-port", "0", "--cores", str(size.cores)]
        arguments += ["--memory", size.memory, "--work-dir", str(work), url]
        return launch(WORKER_CLASS, arguments, environment, self._log(name), NICENESS)

    def _wait_for_url(self, limit_seconds: float) -> str:
        def there() -> bool:
            if self._master.process is None:
                raise ClusterError(f"the master must stay up, but has ended: {self._tail('master')}")
            return self._logged(r"New state: (ALIVE)") is not None

        if not wait_for(there, limit_seconds, POLL_SECONDS):
            raise ClusterError(f"the master must be there within {limit_seconds:g} s, but is not")
        return self.url

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _logged(self, pattern: str) -> str | None:
        return _last_match(self._log("master"), pattern)

    def _tail(self, name: str) -> str:
        try:
            return " ".join(self._log(name).read_text(errors="replace").split()[-40:])
        except OSError:
            return "it left no log"

    def _forget(self, daemon: Daemon) -> None:
        """Its record and what its executors left; its log stays, for whoever asks why."""
        self._records.remove(daemon.name)
        shutil.rmtree(self.folder / "work" / daemon.name, ignore_errors=True)

    def _clear(self) -> None:
        """Ends and removes what a master that has died left behind."""
        self.down()
        for log in self.folder.glob("*.log"):
            log.unlink()


def _inherited(name: str) -> list[str]:
    return [value] if (value := os.environ.get(name)) else []


def _small() -> dict[str, str]:
    """Little memory, few threads; and our jars first, as the archive of classes is made with them."""
    return {
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {archive_options()}".strip(),
        "SPARK_DAEMON_CLASSPATH": os.pathsep.join(
            [*map(str, our_jars()), *_inherited("SPARK_DAEMON_CLASSPATH")]
        ),
    }


def _started(pid: int) -> float:
    """When a process began; 0 for one that has ended already, which is told as dead then."""
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return 0.0


def _last_match(log: Path, pattern: str) -> str | None:
    try:
        found = re.findall(pattern, log.read_text(errors="replace"))
    except OSError:
        return None
    return str(found[-1]) if found else None
