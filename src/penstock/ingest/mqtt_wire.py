"""MQTT on the wire, as far as a quick receiver (MQTT 5) and a quick sender (MQTT 3.1.1) have to know it.

paho takes more than ten times the processor time for a message that this does, spool included. So messages
and what answers them go past paho, and all the rest is left to it.
"""

from __future__ import annotations

import contextlib
import select
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

CHUNK_BYTES = 1 << 18
SEND_SECONDS = 10.0
# A reader that waits is woken for every message, which costs the broker more than the message itself.
REST_SECONDS = 0.002
MOST_BYTES = 268_435_455
NUMBERS = 65_535
"""Messages have numbers from 1 to this, and then from 1 again."""
_PUBLISH = 0x30
_PUBACK = b"\x40\x02"
_PUBREL = b"\x62\x02"
# The first byte of what a broker answers: a message has come, its release is wanted, it was released.
ACKNOWLEDGED, RECEIVED, COMPLETED = 0x40, 0x50, 0x70

# Topic, payload, and the two bytes of the message's number; no bytes where it needs no acknowledgement.
Message = tuple[bytes, bytes, bytes]
# Which of the three it is, and the number of the message.
Answer = tuple[int, bytes]
Taken = TypeVar("Taken")


class MalformedPacket(ConnectionError):
    """Bytes that are no MQTT packet: the connection is of no more use."""


def split_packets(stream: bytes) -> tuple[list[Message], bytes, int]:
    """The messages in a stream, all its other packets as they are, and how many bytes were whole packets.

    >>> split_packets(bytes([0x32, 8, 0, 1]) + b"t" + bytes([0, 7, 0]) + b"hi" + bytes([0xD0, 0, 0x40]))
    ([(b't', b'hi', b'\\x00\\x07')], b'\\xd0\\x00', 12)
    """
    messages: list[Message] = []

    def take(head: int, at: int, stop: int) -> bool:
        if head & 0xF0 != _PUBLISH:
            return False
        messages.append(_message(stream, head, at, stop))
        return True

    others, used = _without(stream, take)
    return messages, others, used


def split_answers(stream: bytes) -> tuple[list[Answer], bytes, int]:
    """The answers to messages in a stream, all its other packets as they are, and the bytes of whole packets.

    >>> split_answers(bytes([0x40, 2, 0, 7, 0xD0, 0, 0x40, 2, 0]))
    ([(64, b'\\x00\\x07')], b'\\xd0\\x00', 6)
    """
    answers: list[Answer] = []

    def take(head: int, at: int, stop: int) -> bool:
        if head not in (ACKNOWLEDGED, RECEIVED, COMPLETED):
            return False
        answers.append((head, stream[at : at + 2]))
        return True

    others, used = _without(stream, take)
    return answers, others, used


def _without(stream: bytes, take: Callable[[int, int, int], bool]) -> tuple[bytes, int]:
    """The packets that `take`, given their first byte and where they are, leaves; and where the last ends."""
    others: list[bytes] = []
    start, end = 0, len(stream)
    while end - start >= 2:
        head, length, at = stream[start], stream[start + 1], start + 2
        if length & 0x80:
            length, at = _read_length(stream, start + 1)
        stop = at + length
        if stop > end or at < 0:
            break
        if not take(head, at, stop):
            others.append(stream[start:stop])
        start = stop
    return b"".join(others), start


def packed(topic: bytes, qos: int, first: int, payloads: Iterable[bytes]) -> bytes:
    """Messages in one piece; they are numbered from `first` on.

    >>> packed(b"t", 1, 65_535, [b"hi", b""])
    b'2\\x07\\x00\\x01t\\xff\\xffhi2\\x05\\x00\\x01t\\x00\\x01'
    """
    head, name = bytes([_PUBLISH | qos << 1]), len(topic).to_bytes(2, "big") + topic
    parts: list[bytes] = []
    for number, payload in enumerate(payloads, first - 1):
        parts += (head, _length(len(name) + 2 + len(payload)), name)
        parts += ((number % NUMBERS + 1).to_bytes(2, "big"), payload)
    return b"".join(parts)


def _length(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    if value > MOST_BYTES:
        raise ValueError(f"an MQTT message must have {MOST_BYTES:,} bytes at most, got {value:,}: send less")
    made = bytearray()
    while value:
        value, low = value >> 7, value & 0x7F
        made.append(low | 0x80 if value else low)
    return bytes(made)


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


class Tap(Generic[Taken]):
    """A socket as paho uses it, which hands what `split` takes out of the stream to `received` instead.

    What is sent goes out whole: messages and answers, from other threads, never split a packet of paho's.
    """

    def __init__(
        self,
        sock: Any,
        split: Callable[[bytes], tuple[list[Taken], bytes, int]],
        received: Callable[[list[Taken]], None],
        rests_after: int = 1,
    ):
        """Where fewer are taken at a time than `rests_after`, the next reading comes without a rest."""
        self._sock = sock
        self._rests_after = rests_after
        self._split = split
        self._received = received
        self._rest = b""
        self._others = b""
        self._whole = threading.Lock()
        self._cut_short = False
        self._stopped = False
        # OpenSSL wants one call at a time.
        self._one_call = threading.Lock()

    def recv(self, size: int) -> bytes:
        """Bytes of packets that are left to paho; BlockingIOError while there are none."""
        if not self._others:
            with self._one_call:
                came = self._sock.recv(CHUNK_BYTES)
            if not came:
                return b""
            if self._take(came) >= self._rests_after and len(came) < CHUNK_BYTES:
                time.sleep(REST_SECONDS)
        if not self._others:
            raise BlockingIOError
        taken, self._others = self._others[:size], self._others[size:]
        return taken

    def _take(self, came: bytes) -> int:
        """How many were taken out of it."""
        stream = self._rest + came if self._rest else came
        try:
            taken, others, used = self._split(stream)
        except IndexError:
            raise MalformedPacket(
                "an MQTT message must be whole, but ends early: the connection ends"
            ) from None
        self._rest = stream[used:]
        self._others += others
        if taken:
            self._received(taken)
        return len(taken)

    def pending(self) -> int:
        """Bytes that a wait for the socket would not notice."""
        inner = self._sock.pending() if isinstance(self._sock, ssl.SSLSocket) else 0
        return inner + len(self._others)

    def send(self, data: bytes | bytearray) -> int:
        """All of it, or an error; after that nothing more, as it would be read as the rest of a packet."""
        rest = memoryview(data)
        with self._whole:
            if self._cut_short:
                raise ConnectionError("a packet was cut short")
            self._cut_short = True
            limit = time.monotonic() + SEND_SECONDS
            while rest:
                try:
                    with self._one_call:
                        # OpenSSL tells of no progress within a piece.
                        rest = rest[self._sock.send(rest[:CHUNK_BYTES]) :]
                    limit = time.monotonic() + SEND_SECONDS
                except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    if self._stopped:
                        raise ConnectionError("the connection is given up") from None
                    if time.monotonic() > limit:
                        raise TimeoutError(f"the broker took nothing for {SEND_SECONDS:g} s") from None
                    select.select([], [self._sock], [], 0.5)
            self._cut_short = False
        return len(data)

    def stop(self) -> None:
        """Who waits for the broker to take something waits no longer."""
        self._stopped = True

    def acknowledge(self, numbers: list[bytes]) -> None:
        """Tells the broker that these messages need not come again."""
        if numbers:
            self.send(_PUBACK + _PUBACK.join(numbers))

    def release(self, numbers: list[bytes]) -> None:
        """Tells the broker that these messages, which it has received, are sent no second time."""
        if numbers:
            self.send(_PUBREL + _PUBREL.join(numbers))

    def close(self) -> None:
        # Not during a call: a socket that is half closed would send in clear what was to be encrypted.
        with self._one_call, contextlib.suppress(OSError):
            self._sock.close()

    def fileno(self) -> int:
        return int(self._sock.fileno())

    def setblocking(self, flag: bool) -> None:
        self._sock.setblocking(flag)
