"""MQTT 5 on the wire, as far as a quick receiver has to know it.

paho takes more than ten times the processor time for a message that this does, spool included. So messages
are taken out of the stream before paho sees it, and all the rest is left to paho.
"""

from __future__ import annotations

import contextlib
import select
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

CHUNK_BYTES = 1 << 18
SEND_SECONDS = 10.0
# A reader that waits is woken for every message, which costs the broker more than the message itself.
REST_SECONDS = 0.002
_PUBLISH = 0x30
_PUBACK = b"\x40\x02"

# Topic, payload, and the two bytes of the message's number; no bytes where it needs no acknowledgement.
Message = tuple[bytes, bytes, bytes]


class MalformedPacket(ConnectionError):
    """Bytes that are no MQTT packet: the connection is of no more use."""


def split_packets(stream: bytes) -> tuple[list[Message], bytes, int]:
    """The messages in a stream, all its other packets as they are, and how many bytes were whole packets.

    >>> split_packets(bytes([0x32, 8, 0, 1]) + b"t" + bytes([0, 7, 0]) + b"hi" + bytes([0xD0, 0, 0x40]))
    ([(b't', b'hi', b'\\x00\\x07')], b'\\xd0\\x00', 12)
    """
    messages: list[Message] = []
    others: list[bytes] = []
    start, end = 0, len(stream)
    while end - start >= 2:
        head, length, at = stream[start], stream[start + 1], start + 2
        if length & 0x80:
            length, at = _read_length(stream, start + 1)
        stop = at + length
        if stop > end or at < 0:
            break
        if head & 0xF0 == _PUBLISH:
            messages.append(_message(stream, head, at, stop))
        else:
            others.append(stream[start:stop])
        start = stop
    return messages, b"".join(others), start


def _message(stream: bytes, head: int, at: int, stop: int) -> Message:
    topic_end = at + 2 + (stream[at] << 8 | stream[at + 1])
    topic = stream[at + 2 : topic_end]
    number = b""
    at = topic_end
    if head & 0x06:
        number = stream[at : at + 2]
        at += 2
    properties, at = (stream[at], at + 1) if stream[at] < 0x80 else _read_length(stream, at)
    if not 0 <= at + properties <= stop:
        raise MalformedPacket("an MQTT message must be as long as it says, but is not: the connection ends")
    return topic, stream[at + properties : stop], number


def _read_length(stream: bytes, at: int) -> tuple[int, int]:
    """A number of up to four bytes and where it ends; (0, -1) while it is not all there."""
    value = 0
    for shift in range(0, 28, 7):
        if at >= len(stream):
            return 0, -1
        value |= (stream[at] & 0x7F) << shift
        at += 1
        if not stream[at - 1] & 0x80:
            return value, at
    raise MalformedPacket("an MQTT length must have four bytes at most, got more: the connection ends")


class MessageTap:
    """A socket as paho uses it, which hands all messages that come to `received` instead.

    What is sent goes out whole: acknowledgements, from another thread, never split a packet of paho's.
    """

    def __init__(self, sock: Any, received: Callable[[list[Message]], None]):
        self._sock = sock
        self._received = received
        self._rest = b""
        self._others = b""
        self._whole = threading.Lock()
        # OpenSSL wants one call at a time.
        self._one_call = threading.Lock()

    def recv(self, size: int) -> bytes:
        """Bytes of packets that are no messages; BlockingIOError while there are none."""
        if not self._others:
            with self._one_call:
                came = self._sock.recv(CHUNK_BYTES)
            if not came:
                return b""
            if self._take(came) and len(came) < CHUNK_BYTES:
                time.sleep(REST_SECONDS)
        if not self._others:
            raise BlockingIOError
        taken, self._others = self._others[:size], self._others[size:]
        return taken

    def _take(self, came: bytes) -> bool:
        """Whether messages were among it."""
        stream = self._rest + came if self._rest else came
        try:
            messages, others, used = split_packets(stream)
        except IndexError:
            raise MalformedPacket(
                "an MQTT message must be whole, but ends early: the connection ends"
            ) from None
        self._rest = stream[used:]
        self._others += others
        if messages:
            self._received(messages)
        return bool(messages)

    def pending(self) -> int:
        """Bytes that a wait for the socket would not notice."""
        inner = self._sock.pending() if isinstance(self._sock, ssl.SSLSocket) else 0
        return inner + len(self._others)

    def send(self, data: bytes | bytearray) -> int:
        """All of it, or an error."""
        rest = memoryview(data)
        limit = time.monotonic() + SEND_SECONDS
        with self._whole:
            while rest:
                try:
                    with self._one_call:
                        rest = rest[self._sock.send(rest) :]
                except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    if time.monotonic() > limit:
                        raise TimeoutError(f"the broker took nothing for {SEND_SECONDS:g} s") from None
                    select.select([], [self._sock], [], 0.5)
        return len(data)

    def acknowledge(self, numbers: list[bytes]) -> None:
        """Tells the broker that these messages need not come again."""
        if numbers:
            self.send(_PUBACK + _PUBACK.join(numbers))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.close()

    def fileno(self) -> int:
        return int(self._sock.fileno())

    def setblocking(self, flag: bool) -> None:
        self._sock.setblocking(flag)
