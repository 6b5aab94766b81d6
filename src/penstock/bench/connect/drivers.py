"""Drivers for the connectors: processes with a Spark session, handed from part to part until they are killed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.bench.workers import Worker

MODULE = "penstock.bench.connect.driver_worker"


class Drivers:
    """Starts a driver when none is free: Spark takes longer to start than most of what is asked of it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-connect-", ignore_cleanup_errors=True)
        self._all: list[Worker] = []
        self._free: list[Worker] = []

    def take(self, count: int = 1) -> list[Worker]:
        """So many drivers that nobody else has; those that must be started start together."""
        taken, self._free = self._free[:count], self._free[count:]
        started = [self._start() for _ in range(count - len(taken))]
        for each in started:
            each.ready()
        return [*taken, *started]

    def _start(self) -> Worker:
        folder = Path(self._folder.name, f"driver-{len(self._all)}")
        folder.mkdir()
        self._all.append(Worker(MODULE, folder))
        return self._all[-1]

    def give_back(self, driver: Worker) -> None:
        """The next one may have it: it lives, and has nothing to do."""
        self._free.append(driver)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for driver in self._all:
            driver.close()
        self._folder.cleanup()
