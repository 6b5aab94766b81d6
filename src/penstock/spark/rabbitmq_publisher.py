"""Messages to RabbitMQ, each confirmed, with pika. Needs no engine and no Spark."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.extras import require
from penstock.ingest.mqtt_security import tls_context
from penstock.pipeline.rabbitmq_sink import RabbitMq
from penstock.spark.mqtt_publisher import CONNECT_SECONDS, UNACKNOWLEDGED, Acknowledgements

# Messages that pika is given at once; between two such lots it reads what the broker says.
LOT = 500
PERSISTENT = 2


def rabbit_link() -> type[RabbitLink]:
    """The link for a publisher; says what to do where pika is missing."""
    require("pika", "pika", "rabbitmq", "sinks.RabbitMq")
    # It tells each lost connection with several tracebacks; the publisher tells it in a line.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    return RabbitLink


class Confirmed:
    """Counts confirmations, which come for one message or for all up to one, in any order.

    >>> confirmed = Confirmed()
    >>> [confirmed.add(tag, multiple) for tag, multiple in ((2, False), (1, False), (5, True), (4, True))]
    [1, 2, 5, 5]
    """

    def __init__(self) -> None:
        self._low = 0
        self._above: set[int] = set()

    def add(self, tag: int, multiple: bool) -> int:
        """How many are confirmed now."""
        if multiple and tag > self._low:
            self._low = tag
            self._above = {each for each in self._above if each > tag}
        elif not multiple:
            self._above.add(tag)
        while self._low + 1 in self._above:
            self._low += 1
            self._above.discard(self._low)
        return self._low + len(self._above)


class RabbitLink:
    """One connection with one channel, run by a thread of its own. It is never mended."""

    def __init__(self, spec: RabbitMq, client_id: str):
        self._spec = spec
        self._client_id = client_id
        self.ended = threading.Event()
        self.trouble = ""
        self._answered = threading.Event()
        self._confirmed = Confirmed()
        self._acks = Acknowledgements(spec, self.ended)
        self._connection: Any = None
        self._channel: Any = None
        self._thread: threading.Thread | None = None

    def connect(self) -> str:
        """What kept it from being connected; empty if nothing did."""
        import pika

        try:
            self._connection = pika.SelectConnection(
                self._parameters(),
                on_open_callback=self._on_open,
                on_open_error_callback=self._on_refused,
                on_close_callback=self._on_closed,
            )
        except Exception as error:
            # Whatever it was: the thread that keeps the connection must go on trying.
            return f"it cannot be reached ({error})"
        loop = self._connection.ioloop
        self._thread = threading.Thread(target=loop.start, name="penstock-rabbitmq", daemon=True)
        self._thread.start()
        if not self._answered.wait(CONNECT_SECONDS):
            return f"it did not answer within {CONNECT_SECONDS:g} s"
        return self.trouble

    def _parameters(self) -> Any:
        import pika

        spec = self._spec
        password = "guest" if spec.password is None else spec.password.reveal()
        secured = (
            {} if spec.tls is None else {"ssl_options": pika.SSLOptions(tls_context(spec.tls), spec.host)}
        )
        return pika.ConnectionParameters(
            spec.host,
            spec.port,
            spec.virtual_host,
            pika.PlainCredentials(spec.username, password, erase_on_connect=True),
            heartbeat=spec.keepalive_seconds,
            connection_attempts=1,
            socket_timeout=CONNECT_SECONDS,
            stack_timeout=CONNECT_SECONDS,
            client_properties={"connection_name": self._client_id},
            **secured,
        )

    def publish(self, payloads: Sequence[str | bytes | None]) -> None:
        half = UNACKNOWLEDGED // 2
        for start in range(0, len(payloads), LOT):
            lot = payloads[start : start + LOT]
            self._acks.wait_for(self._acks.sent - half, self.end)
            self._acks.sent += len(lot)
            self._connection.ioloop.add_callback_threadsafe(partial(self._send, lot))
        self._acks.wait_for(self._acks.sent, self.end)

    def end(self) -> None:
        """Nothing more is sent; who waits for a confirmation is told."""
        self.ended.set()
        self._answered.set()
        self._acks.wake()

    def drop(self) -> None:
        """Closes the connection and ends its thread."""
        self.end()
        if self._thread is not None and self._thread.is_alive():
            self._connection.ioloop.add_callback_threadsafe(self._shut)
            self._thread.join(2)

    # pika calls these from the connection's thread.

    def _send(self, lot: Sequence[str | bytes | None]) -> None:
        import pika

        properties = pika.BasicProperties(delivery_mode=PERSISTENT)
        try:
            for payload in lot:
                body = b"" if payload is None else payload
                self._channel.basic_publish(
                    self._spec.exchange, self._spec.routing_key, body, properties, mandatory=True
                )
        except Exception as error:
            self._fail(f"the connection was lost ({type(error).__name__})")

    def _shut(self) -> None:
        if self._connection.is_open:
            self._connection.close()
        else:
            self._connection.ioloop.stop()

    def _fail(self, trouble: str) -> None:
        self.trouble = self.trouble or trouble
        self.end()

    def _on_refused(self, connection: Any, error: Any) -> None:
        self._fail(f"it cannot be reached ({_brief(error)})")
        connection.ioloop.stop()

    def _on_closed(self, connection: Any, error: Any) -> None:
        self._fail(f"the connection was lost ({_brief(error)})")
        connection.ioloop.stop()

    def _on_open(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._on_channel)

    def _on_channel(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._on_channel_closed)
        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirm, callback=self._on_confirming)

    def _on_confirming(self, frame: Any) -> None:
        if self._spec.exchange:
            self._channel.exchange_declare(self._spec.exchange, passive=True, callback=self._on_ready)
        else:
            self._channel.queue_declare(self._spec.routing_key, durable=True, callback=self._on_ready)

    def _on_ready(self, frame: Any) -> None:
        self._answered.set()

    def _on_channel_closed(self, channel: Any, error: Any) -> None:
        self._fail(f"it closed the channel ({_brief(error)})")

    def _on_return(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._fail(f"no queue gets messages with routing key {self._spec.routing_key!r}")

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        if method.NAME != "Basic.Ack":
            self._fail("it refused a message")
        elif not self.ended.is_set():
            self._acks.note(self._confirmed.add(method.delivery_tag, method.multiple))


def _brief(error: Any) -> str:
    return f"{type(error).__name__}: {error}"[:200]
