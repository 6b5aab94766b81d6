"""What was changed while an engine ran: the last changes, and a file of them in the state directory."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from penstock.measure.changes import Change, ChangeKind
from penstock.spark.kept_lines import KeptLines

log = logging.getLogger("penstock")
KEPT_CHANGES = 1_000


class ChangeLog:
    """Whoever changes slots, nodes, targets, plans or states says so here; from any thread."""

    def __init__(self, folder: Path, clock: Callable[[], float]):
        self._lines = KeptLines(folder, "changes")
        self._clock = clock
        self._changes: deque[Change] = deque(maxlen=KEPT_CHANGES)
        self._lock = threading.Lock()

    def tell(self, kind: ChangeKind, subject: str, became: str, reason: str = "") -> None:
        """Something became something else, now."""
        change = Change(self._clock(), kind, subject, became, reason)
        with self._lock:
            self._changes.append(change)
            try:
                self._lines.add([change.to_json()])
            except OSError as error:
                log.warning("a change could not be kept: %s", error)

    def since(self, time: float) -> tuple[Change, ...]:
        """The changes after `time`, oldest first."""
        with self._lock:
            return tuple(change for change in self._changes if change.at > time)
