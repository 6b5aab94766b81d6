"""Rows that are sent over HTTP as a source. Settings only: `penstock.ingest.http` takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from penstock.secret import Secret

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Http:
    """Requests `POST /` with JSON lines or an Arrow stream, answered when their rows are durable.

    With a `schema` (DDL) a request whose rows do not all fit is refused with the number of the first bad
    line; without one each line is a row in the column `value`, for `parse`. A request that is repeated under
    its Idempotency-Key is taken once. Beyond the loopback a `token` is needed, and should go by TLS.
    """

    port: int
    schema: str | None = None
    host: str = "127.0.0.1"
    token: Secret | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    request_bytes: int = 32 << 20
    connections: int = 64
    limit_bytes: int | None = None
    native: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ValueError(f"a port must be 0 to 65535, got {self.port}: nobody could connect")
        if self.host not in LOOPBACK and self.token is None:
            raise ValueError(
                f"a host beyond the loopback must ask for a token, got {self.host!r} without one: "
                "anybody could send rows"
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("TLS of a server must have a certificate and its key, got one of them alone")
        if self.request_bytes < 1 or self.connections < 1:
            raise ValueError(
                f"a server must take 1 byte and 1 connection or more, got {self.request_bytes} bytes and "
                f"{self.connections} connections: no row would come"
            )
