"""Messages to an MQTT broker, each acknowledged, with paho-mqtt. Needs no engine and no Spark."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from penstock.errors import PenstockError
from penstock.ingest.mqtt_security import secure
from penstock.pipeline.sinks import Mqtt

if TYPE_CHECKING:
    from paho.mqtt.client import Client

log = logging.getLogger("penstock")

# A message has a number below 65536 until it is acknowledged.
UNACKNOWLEDGED = 20_000
SILENCE_SECONDS = 10.0
CONNECT_SECONDS = 5.0
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.1, 2.0


class BrokerAway(PenstockError):
    """Messages that the broker did not acknowledge: publish them again once it is back."""

    def __init__(self, spec: Mqtt, came: str):
        super().__init__(
            f"MQTT broker {spec.host}:{spec.port} must acknowledge every message, but {came}: "
            "the messages wait until it is there"
        )


class Publisher:
    """Publishes lists of payloads. A thread of its own connects, and again whenever the broker was away.

    `changed` is called, from that thread, whenever `connected` has changed.
    """

    def __init__(self, spec: Mqtt, name: str, changed: Callable[[], None] = lambda: None):
        self._spec = spec
        self._name = name
        # The broker ends an older connection of the same client: two runs of a pipeline must not share one.
        self._client_id = spec.client_id or f"penstock-{name}-{uuid.uuid4().hex[:8]}"
        self.changed = changed
        self._link: _Link | None = None
        self._told = False
        self._closing = threading.Event()
        self._found = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def connected(self) -> bool:
        link = self._link
        return link is not None and link.alive

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
        if link is None or not link.alive:
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
            link = _Link(self._spec, self._client_id)
            trouble = link.connect()
            if not trouble:
                pause = FIRST_RETRY_SECONDS
                self._hold(link)
                trouble = "the connection was lost"
            link.drop()
            if not self._closing.is_set():
                self._tell(trouble)
                self._closing.wait(pause)
                pause = min(2 * pause, LAST_RETRY_SECONDS)

    def _hold(self, link: _Link) -> None:
        """Lets the link be used as long as it lives."""
        if self._told:
            log.warning("MQTT broker %s:%d is there again", self._spec.host, self._spec.port)
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
            log.exception("what follows a change of the MQTT connection failed; it goes on")

    def _tell(self, trouble: str) -> None:
        """Once until the broker is there again."""
        if not self._told:
            self._told = True
            log.warning(
                "%r needs MQTT broker %s:%d, but %s: its messages wait until the broker is there",
                self._name,
                self._spec.host,
                self._spec.port,
                trouble,
            )


class _Link:
    """One connection. It is never mended: what it had not sent would be sent besides what is repeated."""

    def __init__(self, spec: Mqtt, client_id: str):
        self._spec = spec
        self.ended = threading.Event()
        self._answered = threading.Event()
        self._refusal = ""
        self._sent = self._acknowledged = 0
        self._awaited = 0
        self._enough = threading.Event()
        self._client = self._new_client(client_id)

    @property
    def alive(self) -> bool:
        return not self.ended.is_set()

    def _new_client(self, client_id: str) -> Client:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2, client_id, reconnect_on_failure=False)
        # 0 is no limit. With one, paho searches all messages that wait whenever one is acknowledged.
        client.max_inflight_messages_set(0)
        client.connect_timeout = CONNECT_SECONDS
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = self._on_publish
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
            self._await(self._sent - half)
            for payload in payloads[start : start + half]:
                self._sent += 1
                self._client.publish(self._spec.topic, payload, self._spec.qos)
        self._await(self._sent)

    def _await(self, acknowledged: int) -> None:
        """Returns once so many messages have been acknowledged since the beginning."""
        self._awaited = acknowledged
        seen, since = self._acknowledged, time.monotonic()
        while True:
            self._enough.clear()
            if self._acknowledged >= acknowledged:
                return
            if not self.alive:
                raise BrokerAway(self._spec, "the connection was lost")
            self._enough.wait(0.5)
            if self._acknowledged > seen:
                seen, since = self._acknowledged, time.monotonic()
            elif time.monotonic() - since > SILENCE_SECONDS:
                self.end()
                raise BrokerAway(self._spec, f"was silent for {SILENCE_SECONDS:g} s")

    def end(self) -> None:
        """Nothing more is sent; who waits for an acknowledgement is told."""
        self.ended.set()
        self._answered.set()
        self._enough.set()

    def drop(self) -> None:
        """Closes the connection and ends paho's thread."""
        self.end()
        self._client.disconnect()
        self._client.loop_stop()

    # paho calls these from its own thread.

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._refusal = f"it refused the connection ({reason})"
        self._answered.set()

    def _on_disconnect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if not self._answered.is_set():
            self._refusal = f"it closed the connection ({reason})"
        self.end()

    def _on_publish(self, client: Any, data: Any, number: int, reason: Any, properties: Any) -> None:
        self._acknowledged += 1
        if self._acknowledged >= self._awaited:
            self._enough.set()
