"""A real MQTT broker and a real subscriber, as processes of their own: Debian's `mosquitto` packages."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from penstock.errors import PenstockError
from penstock.workloads.certificates import Certificate
from penstock.workloads.server_process import end_process

START_SECONDS = 10.0
TRIES = 5


def command(name: str) -> str | None:
    """Where a program of Mosquitto's is; /usr/sbin is not on every user's path."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")


def is_installed() -> bool:
    return command("mosquitto") is not None and command("mosquitto_sub") is not None


def _needed(name: str) -> str:
    found = command(name)
    if found is None:
        raise PenstockError(
            f"{name} must be installed, but was not found: there is no broker to publish to "
            "(Debian, Ubuntu: sudo apt-get install mosquitto mosquitto-clients)"
        )
    return found


class Mosquitto:
    """A broker on a free port of the loopback, with its files in a temporary directory.

    It keeps what subscribers have not acknowledged over `stop` and `start`, and drops no message.
    Unless `anonymous`, it refuses clients without a password; `user` is a name and a password that it
    knows. With a `certificate` it speaks TLS only.
    """

    def __init__(
        self,
        *,
        anonymous: bool = True,
        user: tuple[str, str] | None = None,
        certificate: Certificate | None = None,
    ) -> None:
        self._anonymous = anonymous and user is None
        self._user = user
        self._certificate = certificate
        self._program = _needed("mosquitto")
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-mosquitto-", ignore_cleanup_errors=True)
        self._process: subprocess.Popen[bytes] | None = None
        self.host = "127.0.0.1"
        self.port = 0

    @property
    def log(self) -> str:
        """What the broker has told so far."""
        path = Path(self._folder.name, "log")
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Returns when the broker accepts connections; it keeps its port once it has one."""
        if self._process is not None:
            raise PenstockError("the broker must have stopped before it starts, but runs: nothing changed")
        if self.port:
            self._launch(self.port)
            return
        for attempt in range(TRIES):
            try:
                self._launch(port := free_port())
            except PenstockError:
                # Another program may have taken the port meanwhile.
                if attempt == TRIES - 1:
                    raise
            else:
                self.port = port
                return

    def _launch(self, port: int) -> None:
        configuration = Path(self._folder.name, "mosquitto.conf")
        configuration.write_text(self._settings(port))
        with Path(self._folder.name, "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-c", str(configuration)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        limit = time.monotonic() + START_SECONDS
        while not accepts(self.host, port):
            if self._process.poll() is not None or time.monotonic() > limit:
                self.kill()
                raise PenstockError(
                    f"mosquitto must accept connections on port {port} within {START_SECONDS:g} s, "
                    f"but does not: {self.log[-500:]}"
                )
            time.sleep(0.01)

    def _settings(self, port: int) -> str:
        lines = [
            f"listener {port} {self.host}",
            f"allow_anonymous {str(self._anonymous).lower()}",
            # 0 is no limit: what a subscriber has not read yet is kept, not dropped.
            "max_inflight_messages 0",
            "max_queued_messages 0",
            "persistence true",
            f"persistence_location {self._folder.name}/",
            "set_tcp_nodelay true",
        ]
        if self._certificate is not None:
            files = self._certificate
            lines += [f"certfile {files.cert_file}", f"keyfile {files.key_file}"]
        if self._user is not None:
            lines.append(f"password_file {self._password_file(*self._user)}")
        # As root it would become a user that may not write here.
        return "\n".join([*lines, "user root"] if os.geteuid() == 0 else lines) + "\n"

    def _password_file(self, name: str, password: str) -> str:
        path = Path(self._folder.name, "passwords")
        program = _needed("mosquitto_passwd")
        subprocess.run([program, "-b", "-c", str(path), name, password], check=True, capture_output=True)
        return str(path)

    def stop(self) -> None:
        """Ends it as a shutdown would: sessions and their messages are kept."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would: messages in its memory are gone."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            end_process(process, how, START_SECONDS)

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


class Subscriber:
    """`mosquitto_sub`, which counts what a broker delivers. It outlives a restart of the broker.

    With `keep` the payloads, which must be single lines, can be read too.
    """

    def __init__(self, broker: Mosquitto, topic: str, *, keep: bool = False):
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-subscriber-", ignore_cleanup_errors=True)
        self._path = Path(self._folder.name, "messages")
        # A session that is kept, and at least once: nothing is missed while broker or subscriber is away.
        session = ["-c", "-q", "1", "-i", f"subscriber-{uuid.uuid4().hex[:8]}", "-t", topic]
        program = _needed("mosquitto_sub")
        self._command = [program, "-h", broker.host, "-p", str(broker.port), *session]
        self._form = ["-F", "%p" if keep else "m"]
        self._process: subprocess.Popen[bytes] | None = None
        self._file: IO[bytes] | None = None
        self._count = 0

    @property
    def count(self) -> int:
        """Messages so far; only what is new since the last question is read."""
        assert self._file is not None
        while block := self._file.read(1 << 20):
            self._count += block.count(b"\n")
        return self._count

    @property
    def payloads(self) -> list[str]:
        """Every message so far, in the order of delivery, doubles included."""
        text = self._path.read_text()
        return text[: text.rfind("\n") + 1].splitlines()

    def __enter__(self) -> Self:
        """Subscribes: from then on no message is missed."""
        subscribed = subprocess.run(
            [*self._command, "-E", "-W", "10"], capture_output=True, text=True, check=False
        )
        if subscribed.returncode != 0:
            raise PenstockError(f"mosquitto_sub must be able to subscribe, but: {subscribed.stderr.strip()}")
        with self._path.open("wb") as messages:
            self._process = subprocess.Popen(
                [*self._command, *self._form], stdin=subprocess.DEVNULL, stdout=messages
            )
        self._file = self._path.open("rb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._file is not None:
            self._file.close()
        self._folder.cleanup()


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def accepts(host: str, port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0
