"""HTTP: JSON lines into a spool, and what a killed driver costs senders who repeat their requests."""

from __future__ import annotations

import http.client
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.bench.connect.drivers import Drivers
from penstock.bench.connect.found_rows import put_losses
from penstock.bench.connect.ordeal import Ordeal
from penstock.bench.result import BenchResult, BenchSettings, at_least
from penstock.bench.stats import summary
from penstock.errors import PenstockError
from penstock.queues.spool import Spool
from penstock.workloads.mosquitto import free_port

ROWS_PER_S = 50_000
LIMIT_SECONDS = 300.0
SENDERS = 4
ORDEAL_ROWS = 100
SCHEMA = "id LONG NOT NULL, sensor STRING, celsius DOUBLE"


@dataclass(frozen=True)
class Size:
    """Requests of a round, rows of each, and rounds."""

    requests: int
    rows: int
    rounds: int


FULL = Size(1000, 1000, 5)
QUICK = Size(200, 1000, 1)


def measure(settings: BenchSettings, result: BenchResult, drivers: Drivers) -> None:
    """`http_rows_per_s`, `http_lost` and `http_doubled`: exactly once by their keys."""
    size = QUICK if settings.quick else FULL
    rates = [rate(settings.say, size, number) for number in range(size.rounds)]
    result.put("http_rows_per_s", summary(rates), at_least(ROWS_PER_S))
    made = tempfile.TemporaryDirectory(prefix="penstock-connect-", ignore_cleanup_errors=True)
    with made as folder:
        ordeal = Ordeal("http", str(free_port()), Path(folder), settings.say)
        put_losses(result, "http", Path(folder), sent_over_blows(ordeal, drivers))
    result.setup["http"] = {
        "requests": size.requests,
        "rows_of_a_request": size.rows,
        "senders": SENDERS,
        "blows": ordeal.blows,
    }


def sent_over_blows(ordeal: Ordeal, drivers: Drivers) -> int:
    """The driver is killed while senders send; they repeat what was not answered. The rows they sent."""
    senders = Senders(int(ordeal.at), lambda request: body(request, ORDEAL_ROWS))
    [first] = drivers.take()
    ordeal.live(first)
    senders.start()
    return ordeal.killed_once(first, drivers, lambda: senders.end() * ORDEAL_ROWS)


def body(request: int, rows: int) -> bytes:
    """The rows of a request: their ids follow those of the request before."""
    ids = range(request * rows, (request + 1) * rows)
    return "".join(f'{{"id": {id}, "sensor": "s{id % 100}", "celsius": 20.5}}\n' for id in ids).encode()


def rate(say: Callable[[str], None], size: Size, number: int) -> float:
    """Rows by the second, from the first request on until the last is answered."""
    say(f"round {number + 1}: {size.requests:,} requests of {size.rows:,} rows")
    bodies = [body(request, size.rows) for request in range(size.requests)]
    with tempfile.TemporaryDirectory() as folder:
        with _receiver(Path(folder)) as port:
            senders = Senders(port, bodies.__getitem__, len(bodies))
            began = time.monotonic()
            senders.start()
            senders.join()
            seconds = time.monotonic() - began
        with Spool(folder) as spool:
            if spool.rows != size.requests * size.rows:
                raise PenstockError(f"{size.requests * size.rows} rows must be durable, got {spool.rows}")
    return size.requests * size.rows / seconds


@contextmanager
def _receiver(folder: Path) -> Iterator[int]:
    """`penstock ingest` in a process of its own, and its port; it is killed at the end."""
    command = [sys.executable, "-m", "penstock", "ingest", "--http", "--port", "0"]
    command += ["--spool", str(folder), "--schema", SCHEMA]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().partition("/ into")[0].rpartition(":")[2])
        finally:
            process.kill()


@dataclass
class Senders:
    """Threads that send each body under a key of its own, again and again until it is answered with 200.

    They end after `limit` requests, or when they are told to.
    """

    port: int
    body_of: Callable[[int], bytes]
    limit: int | None = None
    taken: int = 0
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        self._threads = [threading.Thread(target=self._send_all, daemon=True) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    def join(self) -> int:
        """How many requests there were, when all are answered."""
        for thread in self._threads:
            thread.join(LIMIT_SECONDS)
        if any(thread.is_alive() for thread in self._threads):
            raise PenstockError(
                f"{self.taken} requests must be answered in {LIMIT_SECONDS:g} s, some were not"
            )
        return self.taken

    def end(self) -> int:
        """No further request; how many there were, when all are answered."""
        with self._lock:
            self.limit = self.taken
        return self.join()

    def _send_all(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        while (number := self._take()) is not None:
            content = self.body_of(number)
            while not self._send(connection, number, content):
                connection.close()
                time.sleep(0.05)
        connection.close()

    def _take(self) -> int | None:
        with self._lock:
            if self.taken == self.limit:
                return None
            self.taken += 1
            return self.taken - 1

    def _send(self, connection: http.client.HTTPConnection, number: int, content: bytes) -> bool:
        with suppress(OSError, http.client.HTTPException):
            headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"bench-{number}"}
            connection.request("POST", "/", content, headers)
            reply = connection.getresponse()
            reply.read()
            return reply.status == 200
        return False
