"""What the live page's server answers to each request."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import parse_qs, urlsplit

from penstock.dashboard.access import COOKIE, Access
from penstock.dashboard.metrics import CONTENT_TYPE, exposition
from penstock.dashboard.story import story
from penstock.dashboard.watch import Watch
from penstock.errors import PenstockError

MOST_BODY_BYTES = 10_000
PAGE = Path(__file__).with_name("page")
SCRIPTS = ("main", "live", "graph", "timelines", "panels", "words")
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in SCRIPTS},
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Served(Protocol):
    """What a server has that these requests ask for."""

    watch: Watch
    access: Access
    viewers: threading.BoundedSemaphore


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    server_version = "penstock"
    sys_version = ""

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(asked.query, keep_blank_values=True).items()}
        if not self._admitted(query.get("token", "")):
            return
        if "token" in query and asked.path == "/":
            self._remember_token(query["token"])
        elif asked.path in FILES:
            name, kind = FILES[asked.path]
            self._answer(200, (PAGE / name).read_bytes(), kind)
        elif asked.path == "/api/events":
            self._send_events()
        else:
            with self._served.watch.counted():
                self._answer_data(asked.path, query)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self._body()
        if body is None or not self._admitted():
            return None
        engine = self._served.watch.engine
        try:
            asked = json.loads(body)
            match self.path:
                case "/api/pause":
                    engine.pause(asked["pipeline"])
                case "/api/resume":
                    engine.resume(asked["pipeline"])
                case "/api/target":
                    engine.set_latency(asked["pipeline"], asked["sink"], asked["latency"])
                case _:
                    return self._say(404, "nothing is there")
        except PenstockError as error:
            return self._say(409, str(error))
        except (ValueError, TypeError, KeyError):
            return self._say(400, "the request must be a JSON object with the pipeline, and what it asks for")
        self._served.watch.fresh(0.0)
        return self._say(200, "done")

    def _body(self) -> bytes | None:
        """What was sent; None, and the answer is given, where it is too much or of no known length."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MOST_BODY_BYTES:
            self.close_connection = True
            self._say(413, f"a request may have {MOST_BODY_BYTES:,} bytes, and must say how many it has")
            return None
        return self.rfile.read(int(length))

    @property
    def _served(self) -> Served:
        return cast(Served, self.server)

    def _admitted(self, token: str = "") -> bool:
        refusal = self._served.access.refusal(self.command, self.headers, token)  # type: ignore[arg-type]
        if refusal is not None:
            self._say(refusal.status, refusal.reason)
        return refusal is None

    def _answer_data(self, path: str, query: dict[str, str]) -> None:
        watch = self._served.watch
        if path == "/metrics":
            self._answer(200, exposition(watch.fresh()).encode(), CONTENT_TYPE)
        elif path == "/api/state":
            watch.fresh()
            self._answer(200, watch.whole(history="history" in query))
        elif path == "/api/stage":
            try:
                told = story(watch.engine, query.get("name", ""), watch.clock())
            except PenstockError as error:
                self._say(404, str(error))
            else:
                self._answer(200, json.dumps(told).encode())
        else:
            self._say(404, "nothing is there")

    def _send_events(self) -> None:
        """Server-sent events, until the viewer or the engine goes."""
        if not self._served.viewers.acquire(blocking=False):
            return self._say(503, "too many look already: close another page")
        try:
            self.close_connection = True
            self._head(200, "text/event-stream")
            self.end_headers()
            if self.command == "HEAD":
                return None
            for frame in self._served.watch.frames():
                with self._served.watch.counted():
                    self.wfile.write(b"data: " + frame + b"\n\n" if frame else b": still here\n\n")
        except OSError:
            pass  # the viewer has gone
        finally:
            self._served.viewers.release()

    def _remember_token(self, token: str) -> None:
        """As a cookie, so that it stands in no address that people copy."""
        self._head(303, "text/plain")
        self.send_header("Location", "/")
        self.send_header("Set-Cookie", f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _say(self, status: int, text: str) -> None:
        self._answer(status, json.dumps({"said": text}).encode())

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self._head(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in HEADERS.items():
            self.send_header(name, value)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: a log of every request would hide what matters."""
