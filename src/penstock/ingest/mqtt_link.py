"""One connection of a subscriber to an MQTT broker, with paho-mqtt."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.ingest.mqtt_security import secure
from penstock.ingest.mqtt_session import KeptSession
from penstock.ingest.mqtt_wire import Message, Tap, split_packets
from penstock.pipeline.mqtt_source import Mqtt

if TYPE_CHECKING:
    from paho.mqtt.client import Client

log = logging.getLogger("penstock")

CONNECT_SECONDS = 5.0
# Arrivals within this time of each other count as one.
BIN_SECONDS = 0.01


@dataclass
class Batch:
    """Messages in the order they came, and when: (epoch seconds, messages)."""

    messages: list[Message] = field(default_factory=list)
    bins: list[tuple[float, float]] = field(default_factory=list)

    def add(self, messages: list[Message], now: float) -> None:
        self.messages += messages
        if self.bins and now - self.bins[-1][0] < BIN_SECONDS:
            at, rows = self.bins[-1]
            self.bins[-1] = (at, rows + len(messages))
        else:
            self.bins.append((now, float(len(messages))))

    def halves(self) -> tuple[Batch, Batch]:
        """The same messages in two batches; all of them count as come when the first did."""
        middle, at = len(self.messages) // 2, self.bins[0][0]
        first, second = self.messages[:middle], self.messages[middle:]
        return Batch(first, [(at, float(len(first)))]), Batch(second, [(at, float(len(second)))])


class SubscriberLink:
    """Connects, subscribes and collects. It is never mended: a new link gets what this one left open."""

    def __init__(
        self, spec: Mqtt, session: KeptSession, clock: Callable[[], float], arrived: threading.Event
    ):
        self._spec = spec
        self._session = session
        self._clock = clock
        self._arrived = arrived
        self._batch = Batch()
        self._lock = threading.Lock()
        self._answered = threading.Event()
        self._client: Client | None = None
        self._tap: Tap[Message] | None = None
        self.ended = threading.Event()
        self.session_present = False
        self.trouble = ""

    @property
    def rows(self) -> int:
        """Messages that have come and were not taken."""
        return len(self._batch.messages)

    def connect(self) -> str:
        """What kept it from being subscribed; empty if nothing did."""
        try:
            self._client = client = self._new_client()
            secure(client, self._spec)
            client.connect(
                self._spec.host,
                self._spec.port,
                self._spec.keepalive_seconds,
                clean_start=False,
                properties=self._properties(),
            )
            client.loop_start()
        except Exception as error:
            # Whatever it was: the thread that keeps the connection must go on trying.
            return f"it cannot be reached ({error})"
        if not self._answered.wait(CONNECT_SECONDS):
            return f"it did not answer within {CONNECT_SECONDS:g} s"
        return self.trouble

    def _new_client(self) -> Client:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

        link = self

        class TappedClient(Client):
            """paho's client without the messages."""

            def _create_socket(self) -> Any:
                link._tap = Tap(super()._create_socket(), split_packets, link._received)
                return link._tap

        client = TappedClient(
            CallbackAPIVersion.VERSION2,
            self._session.client_id,
            protocol=MQTTProtocolVersion.MQTTv5,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.connect_timeout = CONNECT_SECONDS
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_disconnect = self._on_disconnect
        return client

    def _properties(self) -> Any:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = self._spec.session_seconds
        # Beats the broker's own limit, which is 20 with Mosquitto: it would wait for each batch of 20.
        properties.ReceiveMaximum = self._spec.in_flight
        return properties

    def take(self) -> Batch:
        """All that has come since the last time."""
        with self._lock:
            taken, self._batch = self._batch, Batch()
        return taken

    def acknowledge(self, batch: Batch) -> None:
        """Tells the broker; if that fails, the connection has ended and the messages come again."""
        assert self._tap is not None
        try:
            self._tap.acknowledge([number for _, _, number in batch.messages if number])
        except (OSError, ValueError):
            self.ended.set()

    def drop(self) -> None:
        """Closes the connection and ends paho's thread; the broker keeps the session."""
        self.ended.set()
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()

    # paho calls these from its own thread.

    def _received(self, messages: list[Message]) -> None:
        with self._lock:
            self._batch.add(messages, self._clock())
        self._arrived.set()

    def _on_connect(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        from paho.mqtt.subscribeoptions import SubscribeOptions

        if reason.is_failure:
            self.trouble = f"it refused the connection ({reason})"
            self._answered.set()
            return
        self.session_present = bool(flags.session_present)
        # What the broker keeps for new subscribers must not come again at every connection.
        options = SubscribeOptions(qos=self._spec.qos, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        if self._session.stale_topics:
            client.unsubscribe(list(self._session.stale_topics))
        client.subscribe(self._spec.topic, options=options)

    def _on_subscribe(self, client: Any, data: Any, number: int, reasons: Any, properties: Any) -> None:
        refused = [reason for reason in reasons if reason.is_failure]
        if refused:
            self.trouble = f"it refused the subscription to {self._spec.topic!r} ({refused[0]})"
        elif any(reason.value < self._spec.qos for reason in reasons):
            self.trouble = f"it gives {self._spec.topic!r} with QoS 0 only, where messages can be lost"
        self._answered.set()

    def _on_disconnect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if not self.trouble:
            came = "the connection was lost" if self._answered.is_set() else "it closed the connection"
            self.trouble = f"{came} ({reason})"
        self.ended.set()
        self._answered.set()
        self._arrived.set()
