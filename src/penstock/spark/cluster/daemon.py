"""A process of a cluster on this machine: started, found again by its record, and ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import psutil

from penstock.errors import PenstockError
from penstock.queues.disk import Disk

Kind = Literal["master", "worker"]
EXECUTOR = "CoarseGrainedExecutorBackend"
SAME_SECONDS = 1.0
"""Processes of one id whose starts are further apart than this are two."""


class ClusterError(PenstockError):
    """A cluster that does not come up, or is asked for what it has not."""


@dataclass(frozen=True)
class Daemon:
    """A master or a worker of Spark's, as its record tells of it."""

    name: str
    kind: Kind
    pid: int
    started_at: float
    cores: int = 0
    memory: str = ""
    region: str = ""
    leaving: bool = False

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @property
    def process(self) -> psutil.Process | None:
        """The process, if it lives and is the one that was started: ids are given again."""
        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started_at) < SAME_SECONDS
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    @property
    def executors(self) -> list[psutil.Process]:
        """The processes of the executors that a worker has started and that live."""
        if (process := self.process) is None:
            return []
        try:
            return [each for each in process.children(recursive=True) if _is_executor(each)]
        except psutil.NoSuchProcess:
            return []

    def decommission(self) -> None:
        """Tells a worker to take no more, and its applications to let their executors leave."""
        if self.process is not None:
            os.kill(self.pid, signal.SIGPWR)

    def end(self, limit_seconds: float = 10.0) -> None:
        """Ends the process and what it has started, kindly at first."""
        if (process := self.process) is None:
            return
        try:
            family = [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        _signal([process], signal.SIGTERM)
        _, left = psutil.wait_procs(family, limit_seconds)
        _signal(left, signal.SIGKILL)
        psutil.wait_procs(left, limit_seconds)


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(EXECUTOR in word for word in process.cmdline())
    except psutil.Error:
        return False


def _signal(processes: list[psutil.Process], number: int) -> None:
    for each in processes:
        try:
            each.send_signal(number)
        except psutil.NoSuchProcess:
            continue


def launch(
    daemon_class: str, arguments: list[str], environment: Mapping[str, str], log: Path, niceness: int = 0
) -> int:
    """Starts a class of Spark's own distribution apart from this process; its process id.

    With a `niceness` it, and what it starts, leaves the processors to others first.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    with log.open("ab") as output:
        process = subprocess.Popen(
            [
                *(["nice", "-n", str(niceness)] if niceness else []),
                *("bash", str(home / "bin" / "spark-class"), daemon_class, *arguments),
            ],
            env={**os.environ, "SPARK_HOME": str(home), **environment},
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    # Waited for, as whoever ends it would take a process that nobody has waited for as one that lives.
    threading.Thread(target=process.wait, name=f"penstock-wait-{process.pid}", daemon=True).start()
    return process.pid


class Records:
    """The records of a cluster's processes, one file each."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._disk = Disk(False)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def all(self) -> list[Daemon]:
        """Those that were started and not yet removed, by age."""
        found = [self._read(path) for path in self.folder.glob("*.json")]
        return sorted((each for each in found if each), key=lambda each: (each.started_at, each.name))

    def _read(self, path: Path) -> Daemon | None:
        try:
            return Daemon(**json.loads(path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            # Removed meanwhile, or a name that is taken and not yet filled in.
            return None

    def named(self, name: str) -> Daemon | None:
        return self._read(self.path(name))

    def take_name(self, wanted: str = "") -> str:
        """A name for a worker that no other has; the one wanted, if it is free or its process has died."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if wanted and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", wanted):
            raise ClusterError(
                f"a worker must be named by letters, digits, - and _, got {wanted!r}: nothing was started"
            )
        number = 1
        while True:
            name = wanted or f"worker-{number}"
            try:
                os.close(os.open(self.path(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                return name
            except FileExistsError:
                before = self.named(name)
                if wanted and before is not None and before.process is None:
                    self.remove(name)
                elif wanted:
                    raise ClusterError(
                        f"a worker must have a name of its own, got {wanted!r} again: nothing was started"
                    ) from None
                else:
                    number += 1

    def write(self, daemon: Daemon) -> None:
        self._disk.replace(self.path(daemon.name), daemon.to_json())

    def remove(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)
