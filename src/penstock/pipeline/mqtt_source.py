"""Messages of an MQTT broker as a source. Settings only: `penstock.ingest.mqtt` receives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from penstock.secret import Secret, Tls

# A message has a number below 65536 until it is acknowledged.
MOST_IN_FLIGHT = 65_535


@dataclass(frozen=True)
class Mqtt:
    """Messages of an MQTT 5 broker: columns `topic`, `value` (the payload) and `arrival`.

    QoS 1 in a session that the broker keeps: a message is acknowledged once it is durable in the queue, so
    that none is lost, and one whose acknowledgement was lost comes again (at least once). `topic` may have
    wildcards, or be a shared subscription (`$share/group/topic`). Without a `client_id` one is made for
    the pipeline's state and kept there. Messages go to the queue every `batch_seconds`, or `batch_rows`.
    """

    host: str
    topic: str
    port: int = 1883
    format: Literal["text", "binary"] = "text"
    client_id: str | None = None
    username: str | None = None
    password: Secret | None = None
    tls: Tls | None = None
    keepalive_seconds: int = 20
    session_seconds: int = 7 * 86_400
    in_flight: int = 20_000
    batch_seconds: float = 0.1
    batch_rows: int = 10_000
    limit_bytes: int | None = None
    qos: int = 1
    native: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.topic:
            raise ValueError("a topic to subscribe to must have a name, got '': a broker would refuse it")
        if self.qos != 1:
            raise ValueError(
                f"qos must be 1, got {self.qos}: only then is a message acknowledged when it is durable"
            )
        if self.format not in ("text", "binary"):
            raise ValueError(
                f"format must be 'text' or 'binary', got {self.format!r}: no column is like that"
            )
        if not 1 <= self.in_flight <= MOST_IN_FLIGHT:
            raise ValueError(
                f"in_flight must be 1 to {MOST_IN_FLIGHT}, got {self.in_flight}: MQTT has no more"
            )
        if self.password is not None and self.username is None:
            raise ValueError("a password must come with a username, got none: a broker would refuse it")
        if self.batch_seconds < 0 or self.batch_rows < 1:
            raise ValueError(
                f"a batch must take 0 s or more and 1 row or more, got {self.batch_seconds} s and "
                f"{self.batch_rows} rows: nothing would reach the queue"
            )
        if self.keepalive_seconds < 1 or self.session_seconds < 1:
            raise ValueError(
                f"keepalive and session must be 1 s or more, got {self.keepalive_seconds} s and "
                f"{self.session_seconds} s: messages could be lost unnoticed"
            )
