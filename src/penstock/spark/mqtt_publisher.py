"""Messages to an MQTT broker, each acknowledged. Needs no engine and no Spark."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from penstock.errors import PenstockError
from penstock.extras import require
from penstock.ingest.mqtt_security import secure
from penstock.ingest.mqtt_wire import RECEIVED, Answer, Tap, packed, split_answers
from penstock.pipeline.sinks import Mqtt

if TYPE_CHECKING:
    from paho.mqtt.client import Client

log = logging.getLogger("penstock")

# A message has a number below 65536 until it is acknowledged: ten times as many were no quicker.
UNACKNOWLEDGED = 2_000
PIECE_BYTES = 250_000
PAUSE_SECONDS = 0.001
"""Between two pieces, so that another thread gets the socket: a lock free for a moment is not enough."""
MANY_ANSWERS = 20
"""That come together: then the reader rests for a moment, as more are on their way."""
SILENCE_SECONDS = 10.0
CONNECT_SECONDS = 5.0
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.1, 2.0


class Broker(Protocol):
    """What the settings of every sink at a broker have in common."""

    broker: ClassVar[str]

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


class Link(Protocol):
    """One connection to a broker. It is never mended: a new one is made."""

    ended: threading.Event

    def connect(self) -> str:
        """What kept it from being connected; empty if nothing did."""
        ...

    def publish(self, payloads: Sequence[str | bytes | None]) -> None:
        """Returns when all are acknowledged; else BrokerAway."""
        ...

    def end(self) -> None: ...

    def drop(self) -> None: ...


class BrokerAway(PenstockError):
    """Messages that the broker did not acknowledge: publish them again once it is back."""

    def __init__(self, spec: Broker, came: str):
        super().__init__(
            f"{spec.broker} {spec.host}:{spec.port} must acknowledge every message, but {came}: "
            "the messages wait until it is there"
        )


class Publisher:
    """Publishes lists of payloads. A thread of its own connects, and again whenever the broker was away.

    `changed` is called, from that thread, whenever `connected` has changed.
    """

    def __init__(
        self,
        spec: Any,
        name: str,
        changed: Callable[[], None] = lambda: None,
        link: Callable[[Any, str], Link] | None = None,
    ):
        self._spec: Broker = spec
        self._name = name
        # The broker ends an older connection of the same client: two runs of a pipeline must not share one.
        client_id = spec.client_id or f"penstock-{name}-{uuid.uuid4().hex[:8]}"
        self._new_link = partial(link or mqtt_link(), spec, client_id)
        self.changed = changed
        self._link: Link | None = None
        self._told = False
        self._closing = threading.Event()
        self._found = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def connected(self) -> bool:
        link = self._link
        return link is not None and not link.ended.is_set()

    def start(self) -> None:
        """Begins to connect; the second time it does nothing."""
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(
                    target=self._stay_connected, name=f"penstock-mqtt-{self._name}", daemon=True
                )
                self._thread.start()

    def publish(self, payloads: Sequence[str | bytes | None]) -> None:
        """Returns when the broker has acknowledged them all; BrokerAway if it is not there, or goes away.

        Where nobody called `start`, it connects first.
        """
        if self._thread is None:
            self.__enter__()
        link = self._link
        if link is None or link.ended.is_set():
            raise BrokerAway(self._spec, "is not connected")
        link.publish(payloads)

    def close(self) -> None:
        """Ends the connection; a publish under way raises BrokerAway."""
        self._closing.set()
        if (link := self._link) is not None:
            link.end()
        # A name that is being looked up cannot be interrupted; the thread ends after that.
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(1)

    def __enter__(self) -> Self:
        """Starts, and waits until the broker is there."""
        self.start()
        if not self._found.wait(CONNECT_SECONDS + LAST_RETRY_SECONDS):
            self.close()
            raise BrokerAway(self._spec, "cannot be reached")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stay_connected(self) -> None:
        pause = FIRST_RETRY_SECONDS
        while not self._closing.is_set():
            link = self._new_link()
            trouble = link.connect()
            if not trouble:
                pause = FIRST_RETRY_SECONDS
                self._hold(link)
                trouble = getattr(link, "trouble", "") or "the connection was lost"
            link.drop()
            if not self._closing.is_set():
                self._tell(trouble)
                self._closing.wait(pause)
                pause = min(2 * pause, LAST_RETRY_SECONDS)

    def _hold(self, link: Link) -> None:
        """Lets the link be used as long as it lives."""
        if self._told:
            spec = self._spec
            log.warning("%s %s:%d is there again", spec.broker, spec.host, spec.port)
        self._told = False
        self._link = link
        # close() looks at the link after it has set this.
        if self._closing.is_set():
            link.end()
        self._found.set()
        self._call_changed()
        link.ended.wait()
        self._link = None
        self._call_changed()

    def _call_changed(self) -> None:
        try:
            self.changed()
        except Exception:
            log.exception("what follows a change of the connection to a broker failed; it goes on")

    def _tell(self, trouble: str) -> None:
        """Once until the broker is there again."""
        if not self._told:
            self._told = True
            log.warning(
                "%r needs %s %s:%d, but %s: its messages wait until the broker is there",
                self._name,
                self._spec.broker,
                self._spec.host,
                self._spec.port,
                trouble,
            )


class Acknowledgements:
    """Messages of one connection: how many were sent, and how many of them the broker has answered for."""

    def __init__(self, spec: Broker, ended: threading.Event):
        self._spec = spec
        self._ended = ended
        self._enough = threading.Event()
        self._awaited = 0
        self.sent = self.count = 0

    def note(self, count: int) -> None:
        """So many of them are acknowledged by now."""
        self.count = count
        if count >= self._awaited:
            self._enough.set()

    def wake(self) -> None:
        """The connection has ended: who waits is told."""
        self._enough.set()

    def wait_for(self, wanted: int, give_up: Callable[[], None]) -> None:
        """Returns once so many messages have been acknowledged since the beginning; else BrokerAway."""
        self._awaited = wanted
        seen, since = self.count, time.monotonic()
        while True:
            self._enough.clear()
            if self.count >= wanted:
                return
            if self._ended.is_set():
                raise BrokerAway(self._spec, "the connection was lost")
            self._enough.wait(0.5)
            if self.count > seen:
                seen, since = self.count, time.monotonic()
            elif time.monotonic() - since > SILENCE_SECONDS:
                give_up()
                raise BrokerAway(self._spec, f"was silent for {SILENCE_SECONDS:g} s")


def mqtt_link() -> type[MqttLink]:
    """The link for a publisher; says what to do where paho is missing."""
    require("paho", "paho-mqtt", "mqtt", "sinks.Mqtt")
    return MqttLink


class MqttLink:
    """One connection. It is never mended: what it had not sent would be sent besides what is repeated.

    paho makes it and keeps it; messages and their acknowledgements go past it (`ingest.mqtt_wire`).
    """

    def __init__(self, spec: Mqtt, client_id: str):
        self._spec = spec
        self._topic = spec.topic.encode()
        self.ended = threading.Event()
        self._answered = threading.Event()
        self._refusal = ""
        self._acks = Acknowledgements(spec, self.ended)
        self._tap: Tap[Answer] | None = None
        self._client = self._new_client(client_id)

    def _new_client(self, client_id: str) -> Client:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        link = self

        class TappedClient(Client):
            """paho's client without the answers to messages."""

            def _create_socket(self) -> Any:
                link._tap = Tap(super()._create_socket(), split_answers, link._came, MANY_ANSWERS)
                return link._tap

        client = TappedClient(CallbackAPIVersion.VERSION2, client_id, reconnect_on_failure=False)
        client.connect_timeout = CONNECT_SECONDS
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        return client

    def connect(self) -> str:
        """What kept it from being connected; empty if nothing did."""
        try:
            secure(self._client, self._spec)
            self._client.connect(self._spec.host, self._spec.port, self._spec.keepalive_seconds)
            self._client.loop_start()
        except Exception as error:
            # Whatever it was: the thread that keeps the connection must go on trying.
            return f"it cannot be reached ({error})"
        if not self._answered.wait(CONNECT_SECONDS):
            return f"it did not answer within {CONNECT_SECONDS:g} s"
        return self._refusal

    def publish(self, payloads: Sequence[str | bytes | None]) -> None:
        half = UNACKNOWLEDGED // 2
        for start in range(0, len(payloads), half):
            self._acks.wait_for(self._acks.sent - half, self.end)
            self._send([_as_bytes(each) for each in payloads[start : start + half]])
        self._acks.wait_for(self._acks.sent, self.end)

    def _send(self, payloads: Sequence[bytes]) -> None:
        """In pieces: what keeps the connection alive must get a word in between."""
        assert self._tap is not None
        topic, qos, first = self._topic, self._spec.qos, self._acks.sent + 1
        # Before anything is sent: one that is too long for MQTT is an error, and not the broker's.
        pieces = [packed(topic, qos, first + start, payloads[start:end]) for start, end in _pieces(payloads)]
        self._acks.sent += len(payloads)
        try:
            for number, piece in enumerate(pieces):
                if number:
                    time.sleep(PAUSE_SECONDS)
                self._tap.send(piece)
        except (OSError, ValueError) as error:
            # A socket that was closed meanwhile is a ValueError.
            self.end()
            raise BrokerAway(self._spec, f"the connection was lost ({error})") from error

    def end(self) -> None:
        """Nothing more is sent; who waits for an acknowledgement is told."""
        self.ended.set()
        self._answered.set()
        self._acks.wake()
        if self._tap is not None:
            self._tap.stop()

    def drop(self) -> None:
        """Closes the connection and ends paho's thread."""
        self.end()
        self._client.disconnect()
        self._client.loop_stop()

    # paho calls these from its own thread.

    def _came(self, answers: list[Answer]) -> None:
        assert self._tap is not None
        self._tap.release([number for kind, number in answers if kind == RECEIVED])
        if done := sum(kind != RECEIVED for kind, _ in answers):
            self._acks.note(self._acks.count + done)

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._refusal = f"it refused the connection ({reason})"
        self._answered.set()

    def _on_disconnect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if not self._answered.is_set():
            self._refusal = f"it closed the connection ({reason})"
        self.end()


def _pieces(payloads: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """From where to where: each piece has one payload, or as many as are `PIECE_BYTES` together.

    >>> list(_pieces([b"x" * 100_000] * 5))
    [(0, 2), (2, 4), (4, 5)]
    """
    start = size = 0
    for place, payload in enumerate(payloads):
        if size + len(payload) > PIECE_BYTES and place > start:
            yield start, place
            start, size = place, 0
        size += len(payload)
    if start < len(payloads):
        yield start, len(payloads)


def _as_bytes(payload: str | bytes | None) -> bytes:
    return payload.encode() if isinstance(payload, str) else payload or b""
