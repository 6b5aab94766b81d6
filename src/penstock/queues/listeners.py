"""Those who want to know that a queue changed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

Listener = Callable[[], None]
_log = logging.getLogger(__name__)


@dataclass
class Listeners:
    """Called in turn by the thread that made the change; one that raises is logged and detached."""

    _listeners: tuple[Listener, ...] = ()

    def add(self, listener: Listener) -> None:
        self._listeners = (*self._listeners, listener)

    def remove(self, listener: Listener) -> None:
        self._listeners = tuple(known for known in self._listeners if known != listener)

    def tell(self) -> None:
        for listener in self._listeners:
            try:
                listener()
            except Exception:
                _log.exception("a queue's listener must not raise, %r did: it is told no more", listener)
                self.remove(listener)
