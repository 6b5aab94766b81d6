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

from penstock.bench.connect.found_rows import put_losses, wait_for_ids
from penstock.bench.result import BenchResult, BenchSettings, at_least, at_most
from penstock.bench.stats import summary
from penstock.bench.workers import Worker
from penstock.errors import PenstockError
from penstock.queues.spool import Spool
from penstock.workloads.mosquitto import free_port

WORKER = "penstock.bench.connect.ingest_worker"
ROWS_PER_S = 50_000
LIMIT_SECONDS = 300.0
SENDERS = 4
SCHEMA = "id LONG NOT NULL, sensor STRING, celsius DOUBLE"


@dataclass(frozen=True)
class Size:
    """Requests of a round, rows of each, rounds, and requests of the ordeal."""

    requests: int
    rows: int
    rounds: int
    ordeal_requests: int


FULL = Size(1000, 1000, 5, 400)
QUICK = Size(200, 1000, 2, 60)


def measure(settings: BenchSettings, result: BenchResult) -> None:
    """`http_rows_per_s`, `http_lost` and `http_doubled`: exactly once by their keys."""
    size = QUICK if settings.quick else FULL
    rates = [_rate(settings, size, number) for number in range(size.rounds)]
    result.put("http_rows_per_s", summary(rates), at_least(ROWS_PER_S))
    made = tempfile.TemporaryDirectory(prefix="penstock-connect-", ignore_cleanup_errors=True)
    with made as folder:
        _ordeal(settings, result, Path(folder), size)
    result.setup["http"] = {"requests": size.requests, "rows_of_a_request": size.rows, "senders": SENDERS}


def body(request: int, rows: int) -> bytes:
    """The rows of a request: their ids follow those of the request before."""
    ids = range(request * rows, (request + 1) * rows)
    return "".join(f'{{"id": {id}, "sensor": "s{id % 100}", "celsius": 20.5}}\n' for id in ids).encode()


def _rate(settings: BenchSettings, size: Size, number: int) -> float:
    """Rows by the second, from the first request on until the last is answered."""
    settings.say(f"round {number + 1}: {size.requests:,} requests of {size.rows:,} rows")
    bodies = [body(request, size.rows) for request in range(size.requests)]
    with tempfile.TemporaryDirectory() as folder:
        with _receiver(Path(folder)) as port:
            senders = Senders(port, bodies)
            began = time.monotonic()
            senders.run()
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
    """Threads that send each body under a key of its own, again and again until it is answered with 200."""

    port: int
    bodies: list[bytes]
    done: int = 0
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._send_all, daemon=True) for _ in range(SENDERS)]
        for thread in threads:
            thread.start()
        return threads

    def run(self) -> None:
        for thread in self.start():
            thread.join()

    def _send_all(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        while (number := self._take()) is not None:
            while not self._send(connection, number):
                connection.close()
                time.sleep(0.05)
            with self._lock:
                self.done += 1
        connection.close()

    def _take(self) -> int | None:
        with self._lock:
            if self._next == len(self.bodies):
                return None
            self._next += 1
            return self._next - 1

    def _send(self, connection: http.client.HTTPConnection, number: int) -> bool:
        with suppress(OSError, http.client.HTTPException):
            headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"bench-{number}"}
            connection.request("POST", "/", self.bodies[number], headers)
            reply = connection.getresponse()
            reply.read()
            return reply.status == 200
        return False


def _ordeal(settings: BenchSettings, result: BenchResult, folder: Path, size: Size) -> None:
    """The driver is killed while senders send; they repeat what was not answered. What came is counted."""
    port = free_port()
    arguments = ["--kind", "http", "--port", str(port)]
    senders = Senders(port, [body(request, size.rows) for request in range(size.ordeal_requests)])
    with Worker(WORKER, folder, *arguments) as life:
        life.ready()
        threads = senders.start()
        _until(lambda: senders.done >= size.ordeal_requests // 3)
        settings.say("the driver is killed")
    with Worker(WORKER, folder, *arguments) as life:
        life.ready()
        for thread in threads:
            thread.join(LIMIT_SECONDS)
        wait_for_ids(folder / "found", size.ordeal_requests * size.rows, LIMIT_SECONDS)
        life.ask(do="drain")
    put_losses(result, "http", folder / "found", size.ordeal_requests * size.rows, at_most(0))


def _until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT_SECONDS
    while not condition() and time.monotonic() < limit:
        time.sleep(0.002)
