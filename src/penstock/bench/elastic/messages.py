"""What reached RabbitMQ: every message with the time it came, and how long its sentence took."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import PenstockError
from penstock.spark.feeders import wait_for
from penstock.workloads.wordcount import Ramp, Sentences, Tally
from penstock.workloads.wordcount.ramp import TICK_SECONDS

if TYPE_CHECKING:
    from penstock.workloads.rabbitmq import RabbitMQ

QUIET_SECONDS = 3.0


class Collector:
    """A consumer of one queue, in a thread of its own."""

    def __init__(self, broker: RabbitMQ, queue: str):
        import pika

        self._queue = queue
        # No heartbeat: the machine may be busy for longer than a broker waits for one.
        where = pika.ConnectionParameters(broker.host, broker.port, heartbeat=0)
        self._connection = pika.BlockingConnection(where)
        self._closing = False
        self._error: Exception | None = None
        self._channel = self._connection.channel()
        self._channel.queue_declare(queue, durable=True)
        self._channel.basic_consume(queue, self._take, auto_ack=True)
        self.messages: list[tuple[float, str]] = []
        """When each came, and what it says."""
        self._thread = threading.Thread(target=self._consume, name="penstock-collector", daemon=True)
        self._thread.start()

    def _take(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.messages.append((time.time(), body.decode()))

    def _consume(self) -> None:
        import pika

        try:
            self._channel.start_consuming()
        except pika.exceptions.AMQPError as error:
            self._error = None if self._closing else error

    def wait_for(self, count: int, limit_seconds: float) -> bool:
        """Whether so many came, with a while more for those that should not come.

        Raises where the connection was lost: what came after that is not lost, but was not heard.
        """
        there = wait_for(lambda: len(self.messages) >= count or bool(self._error), limit_seconds, 0.1)
        time.sleep(QUIET_SECONDS)
        if self._error is not None:
            raise PenstockError(
                f"the consumer of {self._queue!r} must stay connected, but was not: {self._error!r}. "
                "What was lost cannot be told"
            )
        return there

    def close(self) -> None:
        import pika

        self._closing = True
        # A broker that has gone has closed it already.
        with suppress(pika.exceptions.AMQPError):
            self._connection.add_callback_threadsafe(self._channel.stop_consuming)
            self._thread.join(10)
            self._connection.close()


@dataclass(frozen=True)
class Latencies:
    """Of the words of the ramp: when each was due, in seconds from its beginning, and how long it took."""

    due: np.ndarray
    seconds: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.seconds.mean()) if len(self.seconds) else float("nan")

    def without(self, moments: Sequence[float], after_seconds: float) -> float:
        """The mean without words due within so long after each of these moments, as E2DF tells it."""
        kept = np.ones(len(self.due), dtype=bool)
        for moment in moments:
            kept &= ~((self.due >= moment) & (self.due < moment + after_seconds))
        return float(self.seconds[kept].mean()) if kept.any() else float("nan")

    def outstanding(self, until: float, step: float = 0.1) -> list[tuple[float, int]]:
        """Moments, and how many words were due by then and had not come.

        >>> Latencies(np.array([1.0, 1.0]), np.array([0.5, 2.0])).outstanding(4.0, step=1.0)
        [(0.0, 0), (1.0, 2), (2.0, 1), (3.0, 0)]
        """
        due, came = np.sort(self.due), np.sort(self.due + self.seconds)
        moments = np.arange(0.0, until, step)
        left = np.searchsorted(due, moments, "right") - np.searchsorted(came, moments, "right")
        return [(float(at), int(words)) for at, words in zip(moments, left, strict=True)]

    def by_minute(self, minute: float) -> list[tuple[float, float]]:
        """Minute and mean latency, where words were due."""
        found = []
        for number in range(int(self.due.max() // minute) + 1 if len(self.due) else 0):
            own = self.seconds[(self.due >= number * minute) & (self.due < (number + 1) * minute)]
            if len(own):
                found.append((number + 0.5, float(own.mean())))
        return found


@dataclass(frozen=True)
class Counted:
    """What came of all that was sent."""

    sent: int
    lost: int
    doubled: int
    latencies: Latencies


def counted(
    messages: Sequence[tuple[float, str]],
    sentences: Sentences,
    phases: Sequence[Mapping[str, Any]],
    ramp: Ramp,
    tick_seconds: float = TICK_SECONDS,
) -> Counted:
    """`phases` tell when the sentences before the ramp and those of it were sent."""
    tally = Tally()
    tally.add(text for _, text in messages)
    total = phases[-1]["sent"]
    sent = sentences.counts(total)
    came: dict[tuple[str, int], float] = {}
    for at, text in messages:
        came.setdefault(_said(text), at)
    last = phases[-1]
    dues = due_times(ramp, last["sent"] - last["first"], tick_seconds)
    pairs = [
        (float(dues[number - last["first"]]), came[word, nth] - last["began"])
        for word, nth, number in occurrences(sentences, total)
        if number >= last["first"] and (word, nth) in came
    ]
    due = np.array([each for each, _ in pairs])
    done = np.array([each for _, each in pairs])
    doubled = tally.doubled + tally.unsent(sent)
    return Counted(sum(sent.values()), tally.lost(sent), doubled, Latencies(due, done - due))


def _said(text: str) -> tuple[str, int]:
    said = json.loads(text)
    return said["word"], said["count"]


def occurrences(sentences: Sentences, count: int) -> list[tuple[str, int, int]]:
    """Word, how often it had come with that, and the number of the sentence it was in."""
    seen: dict[str, int] = {}
    found = []
    for number, text in enumerate(sentences.table(0, count)["sentence"].to_pylist()):
        for word in text.split(" "):
            seen[word] = seen.get(word, 0) + 1
            found.append((word, seen[word], number))
    return found


def due_times(ramp: Ramp, count: int, tick_seconds: float = TICK_SECONDS) -> np.ndarray:
    """When each sentence of a ramp was due: at the first tick that had it.

    >>> [round(float(each), 1) for each in due_times(Ramp(2.0, 2.0, 2.0), 4)]
    [0.5, 1.0, 1.5, 2.0]
    """
    ticks = range(1, round(ramp.seconds / tick_seconds) + 1)
    by_then = np.array([ramp.sentences(tick * tick_seconds) for tick in ticks])
    return (np.searchsorted(by_then, np.arange(count), side="right") + 1) * tick_seconds
