"""Who may see the page and who may change something by it."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

COOKIE = "penstock_token"
MARK = "X-Penstock"
"""A header that a form or a picture of another site cannot send."""


@dataclass(frozen=True)
class Refusal:
    """An answer of 401 or 403, and why."""

    status: int
    reason: str


@dataclass(frozen=True)
class Access:
    """The rules. On a loopback address, which only this machine reaches, reading needs no token."""

    token: str
    loopback: bool

    def refusal(self, method: str, headers: Mapping[str, str], asked_token: str = "") -> Refusal | None:
        """Why a request is refused; None: it is not. `asked_token` is the one in its address."""
        if self.loopback and not is_loopback(_host_name(headers.get("Host", ""))):
            # A name of somebody else's that leads here: DNS rebinding.
            return Refusal(403, "the Host header must name a loopback address: open the page as localhost")
        bearer = headers.get("Authorization", "").removeprefix("Bearer ").strip()
        if self._is_token(bearer):
            return None
        if not self.loopback and not (self._is_token(asked_token) or self._is_token(_cookie(headers))):
            return Refusal(401, "a token is needed: the engine printed an address that has it")
        return None if method in ("GET", "HEAD") else self._foreign(headers)

    def _foreign(self, headers: Mapping[str, str]) -> Refusal | None:
        """Why a request that changes something may have been made by another site."""
        if headers.get(MARK) is None:
            return Refusal(403, f"what changes something must have the header {MARK}, or the token as bearer")
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("Host"):
            return Refusal(403, "what changes something must come from the page itself")
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return Refusal(403, "what changes something must come from the page itself")
        return None

    def _is_token(self, given: str) -> bool:
        return bool(given) and hmac.compare_digest(given.encode(), self.token.encode())


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "10.0.0.7", "evil.example")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_name(host: str) -> str:
    """Without the port, which a tunnel may change."""
    return urlsplit(f"//{host}").hostname or ""


def _cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("Cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
