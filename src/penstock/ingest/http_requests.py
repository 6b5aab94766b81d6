"""One connection over HTTP: its requests, and what each is answered."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, cast

from penstock.ingest.errors import BadRows, KeyReused, NotTaken
from penstock.ingest.group_commit import Parcel, Receipt
from penstock.queues.errors import DiskFull, SpoolFull
from penstock.secret import SecretError

if TYPE_CHECKING:
    from penstock.ingest.http import _Server

log = logging.getLogger("penstock")

ARROW = "application/vnd.apache.arrow.stream"
JSON_LINES = (
    "",
    "application/x-ndjson",
    "application/jsonl",
    "application/json",
    "text/plain",
    "application/x-www-form-urlencoded",  # what curl says of a body when it is told nothing
)
RETRY_SECONDS = 1
LONGEST_KEY = 200
IDLE_SECONDS = 20
FINISH_SECONDS, FINISH_BYTES = 1.0, 64 << 20
_CHUNK_HEAD_BYTES = 1024


@dataclass(frozen=True)
class Answer:
    """Status and body of a reply. `close`: what follows on the connection cannot be understood any more."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    close: bool = False


class Refused(Exception):
    """A request that is answered before its rows are looked at."""

    def __init__(self, status: int, text: str, *, close: bool = False, **headers: str):
        super().__init__(text)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answer = Answer(status, {"error": text}, named, close)


class RowsHandler(BaseHTTPRequestHandler):
    """`POST /` takes rows, `GET /health` tells that it would."""

    protocol_version = "HTTP/1.1"
    server_version = "penstock"
    sys_version = ""
    timeout = IDLE_SECONDS
    # Head and body leave together; waiting for an acknowledgement in between takes 40 ms.
    disable_nagle_algorithm = True
    wbufsize = -1

    @property
    def _home(self) -> _Server:
        return cast("_Server", self.server)

    def do_GET(self) -> None:
        known = self.path == "/health"
        self._reply(Answer(200, {"ready": True}) if known else Answer(404, {"error": "POST / takes rows"}))

    def do_POST(self) -> None:
        with self._home.counting:
            self._home.under_way += 1
        try:
            self._reply(self._answer())
        finally:
            with self._home.counting:
                self._home.under_way -= 1

    def handle_expect_100(self) -> bool:
        """Who asks before sending a body is refused before sending it."""
        try:
            self._check_token()
            self._check_length()
        except Refused as refused:
            self._reply(refused.answer)
            return False
        return super().handle_expect_100()

    def _answer(self) -> Answer:
        try:
            self._check_token()
            if self.path not in ("/", "/rows"):
                raise Refused(404, f"rows must be sent to /, got {self.path[:100]!r}", close=True)
            body = self._body()
            receipt = self._home.commit.take(self._parcel(body))
        except Refused as refused:
            return refused.answer
        except (BadRows, KeyReused, SpoolFull, NotTaken) as error:
            return _refusal(error)
        except OSError:
            raise  # the connection's own trouble: nobody is there to be answered
        except Exception:
            log.exception("a request over HTTP could not be read; it was not kept")
            return Answer(500, {"error": "the request could not be read: nothing of it was kept"}, close=True)
        return _taken(receipt)

    def _check_token(self) -> None:
        secret = self._home.spec.token
        if secret is None:
            return
        try:
            wanted = f"Bearer {secret.reveal()}"
        except SecretError as error:
            raise Refused(503, str(error), close=True) from None
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), wanted.encode()):
            text = "a request must have the token in its Authorization header, got none or another"
            raise Refused(401, text, close=True, WWW_Authenticate="Bearer")

    def _check_length(self) -> int | None:
        """The length of the body; None where it comes in chunks."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return None
        given = self.headers.get("Content-Length", "")
        if not given.isdigit():
            raise Refused(411, "a request must tell its length or come in chunks, got neither", close=True)
        self._check_size(int(given))
        return int(given)

    def _check_size(self, size: int) -> None:
        most = self._home.spec.request_bytes
        if size > most:
            text = f"a request must have {most} bytes at most, got {size} or more: send fewer rows at a time"
            raise Refused(413, text, close=True)

    def _body(self) -> bytes:
        length = self._check_length()
        if self.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refused(415, "a body must come as it is, got Content-Encoding", close=True)
        body = self._chunks() if length is None else self.rfile.read(length)
        if length is not None and len(body) != length:
            raise Refused(400, f"a body must have {length} bytes as told, got {len(body)}", close=True)
        return body

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            head = self.rfile.readline(_CHUNK_HEAD_BYTES).split(b";")[0].strip()
            try:
                length = int(head, 16)
            except ValueError:
                raise Refused(400, "a chunk must begin with its length, but does not", close=True) from None
            if length <= 0:
                break
            size += length
            self._check_size(size)
            parts.append(self.rfile.read(length))
            self.rfile.readline(_CHUNK_HEAD_BYTES)
        while self.rfile.readline(_CHUNK_HEAD_BYTES).strip():
            pass  # trailers
        if sum(map(len, parts)) != size:
            raise Refused(400, f"a body must have {size} bytes as told, but ended early", close=True)
        return b"".join(parts)

    def _parcel(self, body: bytes) -> Parcel:
        arrived = self._home.clock()
        kind = self.headers.get("Content-Type", "").split(";")[0].strip().lower()
        reader = self._home.reader
        if kind == ARROW and reader.schema is not None:
            table = reader.arrow(body)
        elif kind in JSON_LINES:
            table = reader.lines(body)
        else:
            known = "JSON lines (application/x-ndjson)"
            known += f" or {ARROW}" if reader.schema is not None else ", as there is no schema"
            raise Refused(415, f"rows must come as {known}, got {kind[:100]!r}")
        key = self.headers.get("Idempotency-Key")
        if key is None:
            return Parcel(table, arrived)
        if not 1 <= len(key) <= LONGEST_KEY:
            raise Refused(400, f"an Idempotency-Key must have 1 to {LONGEST_KEY} characters, got {len(key)}")
        return Parcel(table, arrived, key, hashlib.blake2b(body, digest_size=16).hexdigest())

    def _reply(self, answer: Answer) -> None:
        content = json.dumps(answer.body).encode() + b"\n"
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.close:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        if answer.close:
            self._let_finish()

    def _let_finish(self) -> None:
        """Reads on for a moment: closed at once, the sender could lose the answer while it still sends."""
        limit, left = time.monotonic() + FINISH_SECONDS, FINISH_BYTES
        with suppress(OSError):
            self.connection.settimeout(FINISH_SECONDS)
            while left > 0 and time.monotonic() < limit and (part := self.rfile.read1(1 << 16)):
                left -= len(part)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a line for each request would be most of the log, and a header may hold a secret."""


def _taken(receipt: Receipt) -> Answer:
    return Answer(200, {"rows": receipt.rows, "repeated": receipt.repeated})


def _refusal(error: Exception) -> Answer:
    text = {"error": str(error)}
    later = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, BadRows):
        return Answer(400, {**text, "line": error.line})
    if isinstance(error, KeyReused):
        return Answer(422, text)
    if isinstance(error, SpoolFull) and not isinstance(error, DiskFull):
        too_large = error.wanted_bytes > error.limit_bytes
        return Answer(413, text) if too_large else Answer(429, text, later)
    return Answer(503, text, later)
