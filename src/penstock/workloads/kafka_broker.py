"""A real Kafka broker as a process of its own: one node, broker and controller in one (KRaft)."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import PenstockError
from penstock.spark.jar import java
from penstock.spark.kafka.jars import BROKER
from penstock.workloads.mosquitto import accepts, free_port
from penstock.workloads.server_process import end_process

START_SECONDS = 120.0
STOP_SECONDS = 30.0
TRIES = 5
CLUSTER = "penstock-broker-000000"
LISTENERS = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", "LOCKED": "SASL_PLAINTEXT"}
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "low-tide"
PASSWORD_OPTIONS = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": f'{LOGIN} username="penstock" password="{PASSWORD}";',
}
# Of a machine that is busy with other things it takes little: few threads, and quick code soon.
OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaBroker:
    """A broker on free ports of the loopback, with its files in a temporary directory.

    It keeps its ports and its records over `stop` and `start`. Topics are made by whoever writes to them
    first, with `partitions` partitions, unless `makes_topics` is False. At a second address, `locked`, it
    asks for a password.
    """

    def __init__(self, *, partitions: int = 2, makes_topics: bool = True, heap_mb: int = 384) -> None:
        self._class_path = os.pathsep.join(map(str, BROKER.paths))
        self._partitions = partitions
        self._heap_mb = heap_mb
        self._makes_topics = makes_topics
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-kafka-", ignore_cleanup_errors=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: tuple[int, int, int] | None = None

    @property
    def servers(self) -> str:
        """Its address, as clients want it."""
        if self._ports is None:
            raise PenstockError("the broker must have been started to have an address, but was not")
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def locked(self) -> str:
        """Its other address, where clients need PASSWORD_OPTIONS."""
        return f"127.0.0.1:{self._ports[2]}" if self._ports is not None else self.servers

    @property
    def log(self) -> str:
        """What the broker has told so far."""
        path = Path(self._folder.name, "log")
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Returns when the broker accepts connections; it keeps its ports once it has some."""
        if self._process is not None:
            raise PenstockError("the broker must have stopped before it starts, but runs: nothing changed")
        if self._ports is not None:
            self._launch(self._ports)
            return
        for attempt in range(TRIES):
            ports = (free_port(), free_port(), free_port())
            self._configuration.write_text(self._settings(ports))
            self._format()
            try:
                self._launch(ports)
            except PenstockError:
                # Another program may have taken a port meanwhile.
                if attempt == TRIES - 1:
                    raise
            else:
                self._ports = ports
                return

    @property
    def _configuration(self) -> Path:
        return Path(self._folder.name, "server.properties")

    def _java(self, *arguments: str) -> list[str]:
        return [java(), f"-Xmx{self._heap_mb}m", *OPTIONS, "-cp", self._class_path, *arguments]

    def _format(self) -> None:
        tool = ("kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", CLUSTER)
        done = subprocess.run(
            self._java(*tool, "-c", str(self._configuration)), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise PenstockError(f"Kafka must be able to make its directory, but: {done.stderr[-500:]}")

    def _launch(self, ports: tuple[int, int, int]) -> None:
        with Path(self._folder.name, "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(self._configuration)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        limit = time.monotonic() + START_SECONDS
        while not accepts("127.0.0.1", ports[0]):
            if self._process.poll() is not None or time.monotonic() > limit:
                self.kill()
                raise PenstockError(
                    f"Kafka must accept connections on port {ports[0]} within {START_SECONDS:g} s, "
                    f"but does not: {self.log[-500:]}"
                )
            time.sleep(0.05)

    def _settings(self, ports: tuple[int, int, int]) -> str:
        at = [f"{name}://127.0.0.1:{port}" for name, port in zip(LISTENERS, ports, strict=True)]
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": ",".join(at),
            "advertised.listeners": f"{at[0]},{at[2]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{ports[1]}",
            "listener.security.protocol.map": ",".join(f"{name}:{how}" for name, how in LISTENERS.items()),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.locked.plain.sasl.jaas.config": f'{LOGIN} user_penstock="{PASSWORD}";',
            "log.dirs": str(Path(self._folder.name, "data")),
            "num.partitions": str(self._partitions),
            "auto.create.topics.enable": str(self._makes_topics).lower(),
            # One node has one copy of everything.
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def stop(self) -> None:
        """Ends it as a shutdown would."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            end_process(process, how, STOP_SECONDS)

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
