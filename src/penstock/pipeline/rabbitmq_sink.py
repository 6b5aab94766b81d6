"""Messages to RabbitMQ as a sink. Settings only: `penstock.spark.rabbitmq_publisher` sends them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from penstock.secret import Secret, Tls


@dataclass(frozen=True)
class RabbitMq:
    """Messages to RabbitMQ: the column `payload` of each row, persistent, in no set order.

    They go to the queue `routing_key`, which is made durable where it is missing, or to an `exchange` that
    must be there. A turn is committed once the broker has confirmed all its messages; one that no queue gets
    is no success. While the broker is away rows wait in the queue before the sink, and nothing else does.
    """

    host: str
    routing_key: str
    port: int = 5672
    exchange: str = ""
    payload: str = "payload"
    virtual_host: str = "/"
    username: str = "guest"
    password: Secret | None = None
    tls: Tls | None = None
    client_id: str | None = None
    keepalive_seconds: int = 20
    broker: ClassVar[str] = "RabbitMQ"
    guarantee: ClassVar[str] = "at least once"
    may_be_away: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.routing_key and not self.exchange:
            raise ValueError(
                "a routing key or an exchange must be named, got neither: no queue would get a row"
            )
        if self.keepalive_seconds < 1:
            raise ValueError(
                f"keepalive must be 1 s or more, got {self.keepalive_seconds} s: "
                "a broker that is gone would not be noticed"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows must have."""
        return (self.payload,)
