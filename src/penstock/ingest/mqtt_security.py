"""How a client of an MQTT broker proves who it is, and knows whom it talks to; for source and sink alike."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from paho.mqtt.client import Client

    from penstock.secret import Secret, Tls


class Secured(Protocol):
    """What the settings of source and sink have in common."""

    @property
    def username(self) -> str | None: ...

    @property
    def password(self) -> Secret | None: ...

    @property
    def tls(self) -> Tls | None: ...


def secure(client: Client, spec: Secured) -> None:
    """Gives a client that is not connected yet its TLS and its password, which is read now."""
    if spec.tls is not None:
        client.tls_set_context(tls_context(spec.tls))
    if spec.username is not None:
        client.username_pw_set(spec.username, None if spec.password is None else spec.password.reveal())


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Checks the server's certificate and name, always."""
    context = ssl.create_default_context(cafile=tls.ca_file)
    if tls.cert_file is not None:
        context.load_cert_chain(tls.cert_file, tls.key_file)
    return context
