"""Looks at a Kafka cluster now and then: how far its topics have come, and whether it is there at all."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import PenstockError
from penstock.pipeline.kafka import client_settings
from penstock.queues.offsets import Reach
from penstock.spark.blame import root_message
from penstock.spark.kafka.connector import connector, java_map

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock")

LOOK_SECONDS = 0.1
REST_SECONDS = 1.0
"""Between two looks where nothing is read, or while the cluster is away."""
ANEW_SECONDS = 2.0
"""Between two looks for new partitions and for what was deleted."""
ANSWER_SECONDS = 5.0
PATIENCE = {"default.api.timeout.ms": "4000", "request.timeout.ms": "3000", "reconnect.backoff.max.ms": "500"}


@dataclass(frozen=True)
class Look:
    """What a look found: what is kept of each partition, or why there was no answer.

    A greater `number` is a later look.
    """

    reaches: Mapping[str, Reach] = field(default_factory=dict)
    away: str = ""
    refused: str = ""
    number: int = 0

    @property
    def there(self) -> bool:
        return not self.away and not self.refused

    @classmethod
    def parse(cls, answer: str) -> Look:
        """From the lines of `Topics.look`."""
        first, _, rest = answer.partition("\n")
        word, _, told = first.partition(" ")
        if word != "ok":
            return cls(refused=told) if word == "refused" else cls(away=told)
        lines = (line.split(" ") for line in rest.splitlines())
        reaches = {f"{topic}/{number}": Reach(int(low), int(end)) for topic, number, low, end in lines}
        return cls(reaches, number=int(told))

    def of(self, topics: Iterable[str]) -> Look:
        """The same with only these topics."""
        wanted = set(topics)
        kept = {name: reach for name, reach in self.reaches.items() if name.split("/")[0] in wanted}
        return Look(kept, self.away, self.refused, self.number)


class Watcher(Protocol):
    """Who wants to know. `reads`: often, as it waits for rows."""

    topics: tuple[str, ...]
    reads: bool

    def told(self, look: Look) -> None: ...


class BrokerWatch:
    """One client for all who use a cluster with the same settings; it looks in a thread of its own."""

    def __init__(self, session: SparkSession, servers: str, options: Mapping[str, str]):
        self._servers = servers
        self._topics = topics_client(session, servers, options)
        self._watchers: list[Watcher] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._anew_at = 0.0
        self._was_there = True
        self._failing: set[int] = set()

    def add(self, watcher: Watcher) -> None:
        with self._changed:
            self._watchers.append(watcher)
            self._anew_at = 0.0
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="penstock-kafka", daemon=True)
                self._thread.start()

    def remove(self, watcher: Watcher) -> bool:
        """Whether nobody is left; then its thread ends."""
        with self._changed:
            if watcher in self._watchers:
                self._watchers.remove(watcher)
            last = not self._watchers
            self._changed.notify()
        return last

    def look_soon(self) -> None:
        """Does not wait until the next look is due: something was written."""
        with self._changed:
            self._changed.notify()

    def look(self, topics: Iterable[str]) -> Look:
        """A look right now, at everything."""
        return self._look(topics, anew=True)

    def _look(self, topics: Iterable[str], anew: bool) -> Look:
        return look_at(self._topics, topics, anew=anew)

    def _run(self) -> None:
        while True:
            with self._changed:
                watchers = tuple(self._watchers)
                if not watchers:
                    self._thread = None
                    return
            began = time.monotonic()
            anew = began >= self._anew_at
            look = self._look([topic for each in watchers for topic in each.topics], anew)
            if anew and look.there:
                self._anew_at = began + ANEW_SECONDS
            self._tell(look)
            for watcher in watchers:
                try:
                    watcher.told(look.of(watcher.topics))
                    self._failing.discard(id(watcher))
                except Exception:
                    if id(watcher) not in self._failing:
                        log.exception("what Kafka at %s tells could not be kept: tried again", self._servers)
                    self._failing.add(id(watcher))
            often = look.there and any(watcher.reads for watcher in watchers)
            with self._changed:
                self._changed.wait(LOOK_SECONDS if often else REST_SECONDS)

    def _tell(self, look: Look) -> None:
        """Says once that the cluster has gone, and once that it is back."""
        if look.there == self._was_there:
            return
        self._was_there = look.there
        if look.there:
            log.warning("Kafka at %s is there again", self._servers)
        else:
            reason = look.away or look.refused
            log.warning("Kafka at %s cannot be reached (%s): what needs it waits", self._servers, reason)
            self._anew_at = 0.0


_watches: dict[Any, BrokerWatch] = {}
_clients: dict[Any, Any] = {}
_lock = threading.RLock()


def _key(session: SparkSession, servers: str, options: Mapping[str, str]) -> Any:
    return id(session.sparkContext), servers, tuple(sorted(options.items()))


def topics_client(session: SparkSession, servers: str, options: Mapping[str, str]) -> Any:
    """The one client for a cluster and these settings; it lives as long as the session."""
    key = _key(session, servers, options)
    with _lock:
        if key not in _clients:
            settings = java_map(session, {**PATIENCE, **client_settings(servers, options)})
            made = connector(session).Topics
            try:
                _clients[key] = made(settings, round(ANSWER_SECONDS * 1000))
            except Exception as error:
                raise PenstockError(
                    f"Kafka's client must be able to work with the settings for {servers}, but: "
                    f"{root_message(error)}: nothing was started"
                ) from error
        return _clients[key]


def look_at(client: Any, topics: Iterable[str], *, anew: bool) -> Look:
    """How far these topics have come."""
    try:
        return Look.parse(str(client.look(" ".join(sorted(set(topics))), anew)))
    except Exception as error:
        return Look(away=root_message(error))


def watch(session: SparkSession, servers: str, options: Mapping[str, str], watcher: Watcher) -> BrokerWatch:
    """The watch over a cluster, which from now on tells this watcher too."""
    key = _key(session, servers, options)
    with _lock:
        found = _watches.get(key)
        if found is None:
            found = _watches[key] = BrokerWatch(session, servers, options)
        found.add(watcher)
    return found


def unwatch(found: BrokerWatch, watcher: Watcher) -> None:
    """This watcher needs it no more."""
    with _lock:
        if found.remove(watcher):
            for key in [key for key, each in _watches.items() if each is found]:
                del _watches[key]
