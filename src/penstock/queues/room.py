"""The bytes a spool may hold: who gets them, who waits, who is refused."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Literal

from penstock.queues.errors import SpoolClosed, SpoolFull

WhenFull = Literal["wait", "refuse"]


class Room:
    """Exact account of the bytes of published and pending segments and of appends on their way.

    Waiting producers are served in the order they came, so that a large append is not overtaken for ever.
    """

    def __init__(self, spool: str, limit_bytes: int | None, when_full: WhenFull, lock: threading.Condition):
        if when_full not in ("wait", "refuse"):
            raise ValueError(
                f"when_full must be 'wait' or 'refuse', got {when_full!r}: a full spool has no other outcome"
            )
        if limit_bytes is not None and limit_bytes <= 0:
            raise ValueError(f"limit_bytes must be positive, got {limit_bytes}: no row would ever fit")
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._spool = spool
        self._refuse = when_full == "refuse"
        self._lock = lock
        self._queue: deque[object] = deque()
        self._closed = False

    @property
    def free_bytes(self) -> int | None:
        """What still fits; None without a limit."""
        return None if self.limit_bytes is None else max(0, self.limit_bytes - self.used_bytes)

    def occupy(self, size: int) -> None:
        """Counts bytes that are there in any case, over the limit or not."""
        with self._lock:
            self.used_bytes += size

    def free(self, size: int) -> None:
        with self._lock:
            self.used_bytes -= size
            self._lock.notify_all()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def reserve(self, size: int, timeout: float | None = None) -> None:
        """`size` bytes are counted as used; else SpoolFull or, when closed meanwhile, SpoolClosed."""
        with self._lock:
            if self.limit_bytes is not None:
                if size > self.limit_bytes or (self._refuse and not self._fits(size)):
                    raise SpoolFull(self._spool, self.limit_bytes, self.used_bytes, size, 0.0)
                self._wait(size, self.limit_bytes, timeout)
            self.used_bytes += size

    def _fits(self, size: int) -> bool:
        return self.limit_bytes is None or self.used_bytes + size <= self.limit_bytes

    def _wait(self, size: int, limit: int, timeout: float | None) -> None:
        ticket = object()
        since = time.monotonic()
        self._queue.append(ticket)
        try:
            in_time = self._lock.wait_for(
                lambda: self._closed or (self._queue[0] is ticket and self._fits(size)), timeout
            )
        finally:
            self._queue.remove(ticket)
            self._lock.notify_all()
        if self._closed:
            raise SpoolClosed(self._spool)
        if not in_time:
            raise SpoolFull(self._spool, limit, self.used_bytes, size, round(time.monotonic() - since, 3))
