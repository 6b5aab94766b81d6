"""The live page of an engine: a small web server of the standard library."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import socket
import threading
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from penstock.dashboard.access import Access, is_loopback
from penstock.dashboard.handler import Handler
from penstock.dashboard.watch import Watch
from penstock.errors import PenstockError

log = logging.getLogger("penstock")

PORT = 4350
ADDRESS_FILE = "dashboard.json"
MOST_VIEWERS = 16


class Dashboard:
    """Serves the page, its data and the metrics of a watched engine until it is closed.

    On a loopback address whoever is on this machine may look; on any other the token is needed.
    The address is kept in the state directory, where `penstock top` finds it, readable by its owner alone.
    """

    def __init__(self, watch: Watch, port: int = PORT, host: str = "127.0.0.1"):
        self.watch = watch
        self.token = secrets.token_urlsafe(24)
        self.access = Access(self.token, is_loopback(host))
        self._server = _Server(watch, self.access, host, port)
        self._address_file = watch.engine.state / ADDRESS_FILE
        self._keep_address()
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.25},
            name="penstock-page",
            daemon=True,
        )
        self._thread.start()

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{name}:{port}/"

    @property
    def url(self) -> str:
        """The address to open; with the token where one is needed."""
        return self.address if self.access.loopback else f"{self.address}?token={self.token}"

    def _keep_address(self) -> None:
        text = json.dumps({"url": self.address, "token": self.token, "process": os.getpid()})
        with contextlib.suppress(FileNotFoundError):
            self._address_file.unlink()
        file = os.open(self._address_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "w") as out:
            out.write(text)

    def close(self) -> None:
        """Ends the server; pages that are open say so."""
        self._address_file.unlink(missing_ok=True)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, watch: Watch, access: Access, host: str, port: int):
        self.watch = watch
        self.access = access
        self.viewers = threading.BoundedSemaphore(MOST_VIEWERS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            raise PenstockError(
                f"the page must have a port of its own, but {host}:{port} cannot be had ({error.strerror}): "
                "give another one with --dashboard PORT, 0 for any"
            ) from error

    def server_bind(self) -> None:
        # Not by way of HTTPServer, which asks the resolver for the name of this machine.
        if self.allow_reuse_address:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a request from %s failed", client_address, exc_info=True)
