"""The point where a stage waits for its turn."""

from __future__ import annotations

import threading


class Gate:
    """Holds one thread until it is released; a release that comes first is not lost."""

    def __init__(self) -> None:
        self._released = threading.Condition()
        self._passes = 0
        self._open = False
        self._held = 0

    def hold(self) -> None:
        """Returns when the next turn is granted, at once if the gate is open."""
        with self._released:
            self._held += 1
            while not self._open and self._passes == 0:
                self._released.wait()
            self._held -= 1
            self._passes = max(self._passes - 1, 0)

    def release(self) -> None:
        """Lets one hold pass."""
        with self._released:
            self._passes += 1
            self._released.notify_all()

    def open(self) -> None:
        """Lets every hold pass, now and later: nothing must hang when the scheduler is gone."""
        with self._released:
            self._open = True
            self._released.notify_all()

    @property
    def holds(self) -> bool:
        """Whether a thread waits here, and nothing lets it go."""
        with self._released:
            return self._held > 0 and self._passes == 0 and not self._open

    @property
    def is_open(self) -> bool:
        return self._open
