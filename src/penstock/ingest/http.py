"""Rows over HTTP into a spool: a server of the standard library, a thread for each connection.

Requests bring many rows each, so that what the server costs for a request hardly counts; what does, reading
and writing the rows, is Arrow's. So no further package is needed.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.ingest.bodies import BodyReader
from penstock.ingest.group_commit import GroupCommit
from penstock.ingest.http_requests import RowsHandler
from penstock.ingest.schema import arrow_schema
from penstock.pipeline.http_source import LOOPBACK, Http
from penstock.queues.spool import Spool

log = logging.getLogger("penstock")


class HttpFeeder:
    """Listens from the start, and answers each request once its rows are in the spool.

    The port is taken at once, so that a mistake shows before anything runs. A pause of the pipeline does
    not stop it: rows wait in the queue, and senders are told to come again when that is full.
    """

    def __init__(self, spec: Http, spool: Spool, clock: Callable[[], float] = time.time):
        self._spec = spec
        self.reader = BodyReader(None if spec.schema is None else arrow_schema(spec.schema))
        if spec.token is not None:
            spec.token.reveal()  # a place without one is told now
        self._commit = GroupCommit(spool, clock)
        self._server = _Server(spec, self.reader, self._commit, clock)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name=f"penstock-http-{spool.name}", daemon=True
        )
        if spec.host not in LOOPBACK and spec.tls_cert is None:
            log.warning(
                "HTTP on %s:%d goes without TLS: others on the way can read token and rows", *self.address
            )

    @property
    def schema(self) -> pa.Schema:
        return self.reader.columns

    @property
    def address(self) -> tuple[str, int]:
        """Host and port; the port is a free one where 0 was asked for."""
        return self._spec.host, self._server.server_port

    @property
    def speaks_tls(self) -> bool:
        return self._spec.tls_cert is not None

    @property
    def done(self) -> bool:
        """Whether no request is under way."""
        return self._server.under_way == 0

    def start(self) -> None:
        self._commit.start()
        self._thread.start()

    def pause(self, paused: bool) -> None:
        """Nothing to do: what comes meanwhile waits in the queue."""

    def stop(self) -> None:
        """Requests that were taken are answered, the next are refused."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(5)
        self._server.server_close()
        self._commit.close()


class _Server(ThreadingHTTPServer):
    """A listening socket with a limit on connections; what it cannot take now is closed at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, spec: Http, reader: BodyReader, commit: GroupCommit, clock: Callable[[], float]):
        self.spec = spec
        self.reader = reader
        self.commit = commit
        self.clock = clock
        self.under_way = 0
        self.counting = threading.Lock()
        self._places = threading.BoundedSemaphore(spec.connections)
        try:
            super().__init__((spec.host, spec.port), RowsHandler)
        except OSError as error:
            raise PenstockError(
                f"HTTP must listen on {spec.host}:{spec.port}, but cannot ({error.strerror}): "
                "choose another port, or end who has it"
            ) from None
        if spec.tls_cert is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            try:
                context.load_cert_chain(spec.tls_cert, spec.tls_key)
            except OSError as error:
                self.server_close()
                raise PenstockError(
                    f"HTTP must have a certificate and its key in files as PEM, got {spec.tls_cert} and "
                    f"{spec.tls_key}: {error}"
                ) from None
            # The handshake is left to the connection's own thread: one that is slow holds up nobody.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that break off are no news."""
        log.debug("a connection to HTTP port %d ended early", self.server_port, exc_info=True)
