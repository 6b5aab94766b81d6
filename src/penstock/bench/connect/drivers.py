"""Drivers for the connectors: processes with a Spark session, handed on until they are killed."""

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
        self._starting: list[Worker] = []

    def begin(self, count: int = 1) -> None:
        """So many drivers will be taken: those that are not there begin to start, together."""
        missing = count - len(self._free) - len(self._starting)
        self._starting += [self._start() for _ in range(missing)]

    def take(self, count: int = 1) -> list[Worker]:
        """So many drivers that nobody else has, when they are ready."""
        self.begin(count)
        for each in self._starting:
            each.ready()
        everyone, self._starting = [*self._free, *self._starting], []
        taken, self._free = everyone[:count], everyone[count:]
        return taken

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
