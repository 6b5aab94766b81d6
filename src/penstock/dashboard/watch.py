"""Watches an engine in a thread of its own: often while somebody looks, now and then while nobody does."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from penstock.dashboard.collector import Collector, News
from penstock.dashboard.delta import difference
from penstock.dashboard.history import History, news_json
from penstock.dashboard.snapshot import Snapshot
from penstock.dashboard.watched import Watched

log = logging.getLogger("penstock")

WATCHED_SECONDS = 1.0
KEPT_FRAMES = 5
"""A viewer that is slower than so many looks gets everything anew."""
UNWATCHED_SECONDS = 3.0
"""So often it looks while nobody does: alerts must be told, and a page shows what was."""


class Watch:
    """Looks at an engine, keeps the last minutes of it in rings, and logs alerts as they begin and end."""

    def __init__(self, engine: Watched, clock: Callable[[], float] = time.time):
        self.engine = engine
        self.clock = clock
        self._collector = Collector(engine, started_at=clock())
        self._history = History()
        self._looking = threading.RLock()
        self._changed = threading.Condition()
        self._counting = threading.local()
        self._viewers = 0
        self._closed = False
        self._sequence = 0
        self._frames: deque[tuple[int, bytes]] = deque(maxlen=KEPT_FRAMES)
        self._sent: Mapping[str, Any] = {}
        self._look()
        self._thread = threading.Thread(target=self._run, name="penstock-watch", daemon=True)
        self._thread.start()

    @property
    def seconds(self) -> float:
        """Processor time that watching has taken so far."""
        return self._collector.watch_seconds

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts the processor time of what is done in it, once."""
        if getattr(self._counting, "now", False):
            yield
            return
        self._counting.now, began = True, time.thread_time()
        try:
            yield
        finally:
            self._collector.watch_seconds += time.thread_time() - began
            self._counting.now = False

    def fresh(self, most_seconds: float = WATCHED_SECONDS) -> Snapshot:
        """The engine now, or at most so long ago: who asks often does not make it look more often."""
        with self._looking:
            if self.clock() - self._snapshot.at >= most_seconds and not self._closed:
                self._look()
            return self._snapshot

    def frames(self, patience_seconds: float = 15.0) -> Iterator[bytes]:
        """JSON for one viewer: first all there is, then only what changed; b"" where nothing did for long."""
        with self._changed:
            self._viewers += 1
            self._changed.notify_all()
        try:
            seen, whole = self._whole()
            yield whole
            while not self._closed:
                if not self._wait_for_look(seen, patience_seconds):
                    yield b""
                    continue
                frame = next((frame for number, frame in tuple(self._frames) if number == seen + 1), b"")
                # Too slow for the frames that are kept, or none was made while nobody looked.
                seen, frame = (seen + 1, frame) if frame else self._whole()
                yield frame
        finally:
            with self._changed:
                self._viewers -= 1

    def _wait_for_look(self, seen: int, patience_seconds: float) -> bool:
        """Whether there was one after that."""
        with self._changed:
            self._changed.wait_for(lambda: self._sequence != seen or self._closed, patience_seconds)
            return self._sequence != seen

    def whole(self, *, history: bool = True) -> bytes:
        """The state as JSON, with the last minutes."""
        return self._whole(history)[1]

    def _whole(self, history: bool = True) -> tuple[int, bytes]:
        with self._looking, self.counted():
            # Who is up to date knows just this: the next difference is from here.
            self._sent = state = self._snapshot.to_json()
            message = self._message(self._sequence, state) | {"full": True}
            if history:
                message |= self._history.to_json()
            return self._sequence, _encoded(message)

    def _message(self, sequence: int, state: Mapping[str, Any]) -> dict[str, Any]:
        return {"seq": sequence, "at": round(self._snapshot.at, 3), "state": state}

    def _look(self) -> None:
        with self._looking, self.counted():
            news = self._collector.look(self.clock())
            self._snapshot = news.snapshot
            self._history.add(news)
            frame = b""
            if self._viewers:
                state = news.snapshot.to_json()
                change = difference(self._sent, state)
                self._sent = state
                frame = _encoded(self._message(self._sequence + 1, change) | news_json(news))
            with self._changed:
                self._sequence += 1
                self._frames.append((self._sequence, frame))
                self._changed.notify_all()
        _log_alerts(news)

    def _run(self) -> None:
        while not self._closed:
            self._rest()
            if not self._closed:
                try:
                    self._look()
                except Exception:
                    log.exception("watching failed and is tried again")

    def _rest(self) -> None:
        """Until the next look is due; the first viewer does not wait for one that was due without it."""
        with self._changed:
            watched = self._viewers > 0
            seconds = WATCHED_SECONDS if watched else UNWATCHED_SECONDS
            self._changed.wait_for(lambda: self._closed or (self._viewers > 0 and not watched), seconds)

    def close(self) -> None:
        """Ends it; viewers get no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _log_alerts(news: News) -> None:
    """Missed targets are told by the engine itself, with what would help."""
    for alert in news.turnover.began:
        if alert.kind != "target":
            log.warning("alert: %s %s: %s", alert.kind, alert.subject, alert.reason)
    for alert in news.turnover.ended:
        if alert.kind != "target":
            log.info("alert over: %s %s", alert.kind, alert.subject)
