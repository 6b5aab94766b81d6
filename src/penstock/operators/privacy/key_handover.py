"""The way of keys from this process into the memory of the driver's JVM: past logs, plans and disks."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock")
# What any pipe holds without a reader.
LIMIT_BYTES = 16_000
FUNCTION = "function"
_RING = '{"current": id, "keys": {id: 32 bytes}} or one key of 32 bytes'
_asked: dict[str, Any] = {}
_asked_lock = threading.Lock()


class KeysError(PenstockError):
    """Keys that cannot be used; the message names their place, never what lies there."""


def hand_over(session: SparkSession, kind: str, name: str, text: str) -> str | None:
    """Puts a ring into the JVM; what is wrong with it, or None.

    Through a named pipe that only this user can open: the arguments of calls stand in py4j's debug log.
    """
    ring = text.encode()
    if len(ring) > LIMIT_BYTES:
        raise KeysError(
            f"keys: a ring must have at most {LIMIT_BYTES} bytes, got {len(ring)}: remove keys out of use"
        )
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        pipe = Path(folder) / "ring"
        os.mkfifo(pipe, 0o600)
        # Open for both, the pipe waits for no reader, and keeps what none has read yet.
        end = os.open(pipe, os.O_RDWR)
        try:
            os.write(end, struct.pack(">I", len(ring)) + ring)
            problem: str | None = jvm(session).penstock.KeyPlace.take(kind, name, str(pipe))
            return problem
        finally:
            os.close(end)


def ring_text(function: Callable[[], Any]) -> str:
    """The ring that a function returns, as text. Its exceptions may quote keys: only their type is told."""
    try:
        ring = function()
    except Exception as error:
        raise KeysError(
            f"keys: the function must return {_RING}, but it raised {type(error).__name__}: "
            "there is nothing to encrypt with"
        ) from None
    if isinstance(ring, str | bytes):
        return str(_text_of(ring))
    if not isinstance(ring, Mapping) or not isinstance(ring.get("keys"), Mapping):
        raise KeysError(
            f"keys: the function must return {_RING}, got another {type(ring).__name__}: "
            "there is nothing to encrypt with"
        )
    try:
        return json.dumps({**ring, "keys": {id: _text_of(key) for id, key in ring["keys"].items()}})
    except (TypeError, ValueError):
        raise KeysError(
            f"keys: the function must return {_RING}, got values of other types: "
            "there is nothing to encrypt with"
        ) from None


def _text_of(key: Any) -> Any:
    return base64.b64encode(key).decode() if isinstance(key, bytes) else key


@dataclass(frozen=True)
class Asker:
    """Asks a function for its ring again and again, in a thread of its own that ends with the session."""

    session: SparkSession
    name: str
    function: Callable[[], Any]
    refresh_seconds: float

    def start(self) -> None:
        """Hands over a first ring; a function that is being asked already gets no second thread."""
        text = ring_text(self.function)
        problem = hand_over(self.session, FUNCTION, self.name, text)
        if problem is not None:
            raise KeysError(problem)
        context = self.session.sparkContext
        with _asked_lock:
            if _asked.get(self.name) is context:
                return
            _asked[self.name] = context
        digest = _digest(text)
        threading.Thread(target=self._run, args=(digest,), name="penstock keys", daemon=True).start()

    def _run(self, digest: bytes) -> None:
        context = self.session.sparkContext
        while _asked.get(self.name) is context:
            time.sleep(self.refresh_seconds)
            if context._jsc is None:
                return
            digest = self._ask(digest)

    def _ask(self, before: bytes) -> bytes:
        """Hands over what the function returns where its digest is not `before`; it may fail at any time."""
        try:
            text = ring_text(self.function)
            if _digest(text) == before:
                return before
            problem = hand_over(self.session, FUNCTION, self.name, text)
        except KeysError as error:
            problem = str(error)
        except Exception as error:
            problem = f"keys: they could not be handed over: {type(error).__name__}"
        if problem is None:
            return _digest(text)
        # Not where the session is just ending.
        if self.session.sparkContext._jsc is not None:
            log.warning("%s; the last good ring stays in use", problem)
        return before


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
