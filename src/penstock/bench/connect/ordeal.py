"""A driver is struck in the middle of its work, and another goes on where it was killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.bench.connect.drivers import Drivers
from penstock.bench.workers import Worker


@dataclass
class Ordeal:
    """The lives of one pipeline of `lives`, whose rows keep coming from `at`.

    `blows` tells what was done at each blow: rows in the spool, and the stages that were in a turn.
    """

    kind: str
    at: str
    folder: Path
    say: Callable[[str], None]
    rows: int = 10_000
    """How many rows come at least between two blows."""
    blows: dict[str, Any] = field(default_factory=dict)

    def live(self, driver: Worker) -> None:
        driver.ask(do="live", kind=self.kind, at=self.at, folder=str(self.folder))

    def restart(self, driver: Worker, restart: Callable[[], None]) -> None:
        """Whoever the driver gets its rows from goes away and comes back while a turn runs."""
        self.blows["broker restarted"] = driver.ask(do="busy", rows=self.rows)
        self.say("the broker restarts")
        restart()

    def kill(self, driver: Worker) -> None:
        """SIGKILL while a turn runs."""
        self.blows["driver killed"] = driver.ask(do="busy", rows=self.rows)
        driver.close()
        self.say("the driver is killed")

    def go_on(self, driver: Worker, end_feed: Callable[[], int]) -> int:
        """Another driver takes over while rows still come, and brings all of them; how many were sent."""
        self.live(driver)
        self.blows["feed ended"] = driver.ask(do="busy", rows=self.rows)
        sent = end_feed()
        driver.ask(do="complete", rows=sent)
        driver.ask(do="rest")
        return sent

    def killed_once(self, first: Worker, drivers: Drivers, end_feed: Callable[[], int]) -> int:
        """The first driver is killed, one of the others goes on; how many rows were sent."""
        self.kill(first)
        [second] = drivers.take()
        sent = self.go_on(second, end_feed)
        drivers.give_back(second)
        return sent
