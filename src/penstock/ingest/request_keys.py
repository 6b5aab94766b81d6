"""Keys of requests whose rows are durable: a request that comes again under its key is not taken twice."""

from __future__ import annotations

import errno
import json
import logging
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.ingest.errors import KeyReused

log = logging.getLogger("penstock")

FILE_SECONDS = 3600
KEPT_SECONDS = 24 * FILE_SECONDS
MOST_KEYS = 1_000_000


@dataclass(frozen=True)
class Taken:
    """A request that was taken: its key, what tells its body from another, and its rows."""

    key: str
    digest: str
    rows: int


class RequestKeys:
    """The keys of the last 24 hours, and of a million requests at most, in files of an hour each.

    A segment's keys are published with it, and written here before its requests are answered. So all but
    those of the newest segment are surely here; that one's are handed in at the start.
    """

    def __init__(self, folder: Path, newest: Iterable[Taken], now: float, *, fsync: bool = False):
        self._folder = folder
        self._fsync = fsync
        self._known: dict[str, Taken] = {}
        self._order: deque[tuple[int, Taken]] = deque()
        """By hour, oldest first."""
        self.unsaved: list[Taken] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._forget_old(now)
        for path in sorted(folder.iterdir()):
            for line in path.read_text(errors="replace").splitlines():
                self._read(line, int(path.name) if path.name.isdigit() else int(now // FILE_SECONDS))
        missing = [each for each in newest if each.key not in self._known]
        if missing:
            self.keep(missing, now)

    def _read(self, line: str, hour: int) -> None:
        try:
            key, digest, rows = json.loads(line)
        except ValueError:
            return  # cut short by a crash: its request was not answered, and its segment knows it
        self._remember(Taken(key, digest, rows), hour)

    def _remember(self, taken: Taken, hour: int) -> None:
        self._known[taken.key] = taken
        self._order.append((hour, taken))
        while len(self._known) > MOST_KEYS:
            self._forget_oldest()

    def find(self, key: str, digest: str) -> Taken | None:
        """The request of that key; KeyReused if it had another body."""
        taken = self._known.get(key)
        if taken is not None and taken.digest != digest:
            raise KeyReused(key)
        return taken

    def keep(self, requests: Iterable[Taken], now: float) -> None:
        """Remembers them, durably; where the disk is full, the next segment must carry what is `unsaved`."""
        fresh = list(requests)
        for each in fresh:
            self._remember(each, int(now // FILE_SECONDS))
        self.unsaved += fresh
        if not self.unsaved:
            return
        try:
            self._save(now)
        except OSError as error:
            log.warning(
                "keys of requests in %s could not be written and are tried again: %s", self._folder, error
            )
        else:
            self.unsaved = []

    def _save(self, now: float) -> None:
        path = self._folder / f"{int(now // FILE_SECONDS):09d}"
        if not path.exists():
            self._forget_old(now)
        # The line break comes first: a line that a crash cut short must not swallow the next.
        lines = "".join(
            f"\n{json.dumps([each.key, each.digest, each.rows])}" for each in self.unsaved
        ).encode()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if os.write(descriptor, lines) != len(lines):
                raise OSError(errno.ENOSPC, "only a part could be written", str(path))
            if self._fsync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _forget_old(self, now: float) -> None:
        oldest = int((now - KEPT_SECONDS) // FILE_SECONDS)
        while self._order and self._order[0][0] < oldest:
            self._forget_oldest()
        for path in self._folder.iterdir():
            if path.name.isdigit() and int(path.name) < oldest:
                path.unlink(missing_ok=True)

    def _forget_oldest(self) -> None:
        _, taken = self._order.popleft()
        if self._known.get(taken.key) is taken:
            del self._known[taken.key]
