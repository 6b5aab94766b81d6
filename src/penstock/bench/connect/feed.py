"""Rows that keep coming while a connector is struck."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Feed:
    """A thread that sends lot after lot until it is ended, with a rest between two.

    `send(first)` gives the number after its last; the first lot begins with `first`.
    """

    def __init__(self, send: Callable[[int], int], rest_seconds: float = 0.0, first: int = 0):
        self._send = send
        self._sent = first
        self._rest_seconds = rest_seconds
        self._error: BaseException | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bench-feed", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ending.wait(self._rest_seconds):
                self._sent = self._send(self._sent)
        except BaseException as error:
            self._error = error

    def end(self) -> int:
        """The number after the last, when all are sent."""
        self._ending.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._sent
