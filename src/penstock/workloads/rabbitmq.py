"""A real RabbitMQ as a process of its own: Debian's `rabbitmq-server` package."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import PenstockError
from penstock.workloads.mosquitto import accepts, free_port

START_SECONDS = 90.0
"""Erlang takes its time where others use the processor."""
PROGRAMS = "/usr/lib/rabbitmq/bin"
"""Those on the path want to be another user, and keep their files elsewhere."""

ONLY_LOOPBACK = "-kernel inet_dist_use_interface {127,0,0,1}"


def command(name: str) -> str | None:
    """Where a program of RabbitMQ's is."""
    return shutil.which(name, path=PROGRAMS) or shutil.which(name)


def is_installed() -> bool:
    return command("rabbitmq-server") is not None and shutil.which("epmd") is not None


def _needed(name: str) -> str:
    found = command(name)
    if found is None:
        raise PenstockError(
            f"{name} must be installed, but was not found: there is no broker to publish to "
            "(Debian, Ubuntu: sudo apt-get install rabbitmq-server)"
        )
    return found


class RabbitMQ:
    """A node on free ports of the loopback, with a name of its own and its files in a temporary directory.

    Durable queues and persistent messages are kept over `stop` and `start`. Erlang's register of names,
    `epmd`, is one of its own too, and ends with it.
    """

    def __init__(self) -> None:
        self._program, self._register = _needed("rabbitmq-server"), _needed("epmd")
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-rabbitmq-", ignore_cleanup_errors=True)
        self._name = f"penstock-{uuid.uuid4().hex[:8]}@localhost"
        self._epmd: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.host = "127.0.0.1"
        self.port = self._epmd_port = self._peer_port = 0

    @property
    def url(self) -> str:
        """For clients of AMQP; the user `guest` may come from this machine only."""
        return f"amqp://guest:guest@{self.host}:{self.port}/"

    @property
    def log(self) -> str:
        """What the broker has told so far."""
        path = Path(self._folder.name, "log")
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Returns when the broker accepts connections; it keeps its ports once it has them."""
        if self._process is not None:
            raise PenstockError("the broker must have stopped before it starts, but runs: nothing changed")
        if not self.port:
            self.port, self._epmd_port, self._peer_port = free_port(), free_port(), free_port()
        with Path(self._folder.name, "log").open("ab") as log:
            self._epmd = subprocess.Popen(
                [self._register, "-address", self.host, "-port", str(self._epmd_port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            self._process = subprocess.Popen(
                [self._program],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ended with all that it starts, and not by a Ctrl-C meant for others.
                start_new_session=True,
            )
        self._wait()

    def _wait(self) -> None:
        assert self._process is not None
        limit = time.monotonic() + START_SECONDS
        while not accepts(self.host, self.port):
            if self._process.poll() is not None or time.monotonic() > limit:
                self.kill()
                raise PenstockError(
                    f"rabbitmq-server must accept connections on port {self.port} within "
                    f"{START_SECONDS:g} s, but does not: {self.log[-500:]}"
                )
            time.sleep(0.05)

    def _environment(self) -> dict[str, str]:
        folder = self._folder.name
        settings = {
            "HOME": folder,  # where Erlang keeps the secret that nodes share
            "RABBITMQ_NODENAME": self._name,
            "RABBITMQ_NODE_IP_ADDRESS": self.host,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._peer_port),
            "RABBITMQ_MNESIA_BASE": f"{folder}/data",
            "RABBITMQ_LOG_BASE": f"{folder}/logs",
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
            "RABBITMQ_CONF_ENV_FILE": f"{folder}/none",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq",
            "RABBITMQ_ALLOW_INPUT": "1",  # the broker is the process that is started, not a child of it
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": self.host,
            # Two cores at most: it stands beside what is measured.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"+S 2:2 -noinput {ONLY_LOOPBACK}",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RABBITMQ_")}
        return {**kept, **settings}

    def stop(self) -> None:
        """Ends it as a shutdown would."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            _signal_group(process.pid, how)
            try:
                process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            finally:
                # What it has started, such as its looks at disk and memory, may outlive it.
                _signal_group(process.pid, signal.SIGKILL)
                process.wait()
        epmd, self._epmd = self._epmd, None
        if epmd is not None:
            epmd.kill()
            epmd.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._folder.cleanup()


def _signal_group(process: int, how: signal.Signals) -> None:
    try:
        os.killpg(process, how)
    except ProcessLookupError:
        return
