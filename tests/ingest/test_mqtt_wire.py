"""Packets of MQTT as the specifications have them, whole and in pieces."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest import mqtt_wire
from penstock.ingest.mqtt_wire import MalformedPacket, Message, Tap, packed, split_answers, split_packets

PINGRESP = b"\xd0\x00"


def length(value: int) -> bytes:
    """A number as MQTT writes it: seven bits a byte, the lowest first."""
    written = b""
    while True:
        value, low = divmod(value, 128)
        written += bytes([low | (0x80 if value else 0)])
        if not value:
            return written


def publish(topic: bytes, payload: bytes, number: int | None, properties: bytes = b"") -> bytes:
    qos = b"" if number is None else number.to_bytes(2, "big")
    body = len(topic).to_bytes(2, "big") + topic + qos + length(len(properties)) + properties + payload
    return bytes([0x30 if number is None else 0x32]) + length(len(body)) + body


def in_pieces(
    stream: bytes, split: Callable[[bytes], tuple[list[Any], bytes, int]], data: st.DataObject
) -> tuple[list[Any], bytes, bytes]:
    """What is taken out of a stream that comes in pieces, what is left to others, what is in no packet."""
    found: list[Any] = []
    others = rest = b""
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        rest, stream = rest + stream[:cut], stream[cut:]
        taken, other, used = split(rest)
        found, others, rest = found + taken, others + other, rest[used:]
    return found, others, rest


MESSAGES = st.tuples(
    st.binary(max_size=20),
    st.binary(max_size=300),
    st.none() | st.integers(1, 65535),
    st.binary(max_size=200),
)


@given(st.lists(MESSAGES | st.just(PINGRESP), max_size=8), st.data())
def test_messages_and_other_packets_are_told_apart_wherever_the_stream_is_cut(
    packets: list[tuple[bytes, bytes, int | None, bytes] | bytes], data: st.DataObject
) -> None:
    stream = b"".join(each if isinstance(each, bytes) else publish(*each) for each in packets)
    found, others, rest = in_pieces(stream, split_packets, data)
    assert rest == b""
    assert others == PINGRESP * packets.count(PINGRESP)
    assert found == [
        (each[0], each[1], b"" if each[2] is None else each[2].to_bytes(2, "big"))
        for each in packets
        if not isinstance(each, bytes)
    ]


@given(
    st.binary(max_size=20),
    st.sampled_from((1, 2)),
    st.integers(1, 200_000),
    st.lists(st.binary(max_size=300)),
)
def test_messages_are_packed_as_the_specification_has_them(
    topic: bytes, qos: int, first: int, payloads: list[bytes]
) -> None:
    expected, number = b"", (first - 1) % 65535 + 1
    for payload in payloads:
        body = len(topic).to_bytes(2, "big") + topic + number.to_bytes(2, "big") + payload
        expected += bytes([0x30 + 2 * qos]) + length(len(body)) + body
        number = 1 if number == 65535 else number + 1
    assert packed(topic, qos, first, payloads) == expected


def test_long_messages_are_packed_up_to_the_longest_that_mqtt_knows() -> None:
    class Long(bytes):
        def __len__(self) -> int:
            return 268_435_455

    assert packed(b"t", 1, 1, [b"x" * 20_000])[1:4] == length(20_005)
    with pytest.raises(ValueError, match=r"must have 268,435,455 bytes at most, got 268,435,460: send less"):
        packed(b"t", 1, 1, [Long()])


@given(st.lists(st.tuples(st.sampled_from((0x40, 0x50, 0x70)), st.binary(min_size=2, max_size=2))), st.data())
def test_answers_are_told_from_other_packets_wherever_the_stream_is_cut(
    answers: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    stream = PINGRESP + b"".join(bytes([kind, 2]) + number for kind, number in answers) + PINGRESP
    found, others, rest = in_pieces(stream, split_answers, data)
    assert (found, others, rest) == (answers, PINGRESP * 2, b"")


def test_a_length_that_never_ends_is_refused() -> None:
    with pytest.raises(MalformedPacket, match="an MQTT length must have four bytes at most"):
        split_packets(b"\x32\xff\xff\xff\xff\xff")


def test_a_message_longer_than_its_packet_is_refused() -> None:
    with pytest.raises(MalformedPacket, match="an MQTT message must be as long as it says"):
        split_packets(b"\x32\x06\x00\x01t\x00\x07\x7f")


def test_the_tap_hands_on_messages_and_leaves_the_rest_to_its_reader() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    found: list[Message] = []
    tap = Tap(ours, split_packets, found.extend)
    theirs.sendall(publish(b"t", b"a", 7) + PINGRESP + publish(b"t", b"b", 8))
    assert tap.recv(1) == b"\xd0"
    assert tap.pending() == 1
    assert tap.recv(10) == b"\x00"
    assert found == [(b"t", b"a", b"\x00\x07"), (b"t", b"b", b"\x00\x08")]
    with pytest.raises(BlockingIOError):
        tap.recv(1)
    tap.acknowledge([number for _, _, number in found])
    assert theirs.recv(100) == b"\x40\x02\x00\x07\x40\x02\x00\x08"
    theirs.close()
    assert tap.recv(1) == b""
    tap.close()


def test_the_reader_rests_after_messages_so_that_it_is_not_woken_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests: list[float] = []
    monkeypatch.setattr(mqtt_wire, "CHUNK_BYTES", 32)
    # Not the module's own: threads of other tests may sleep too.
    monkeypatch.setattr(mqtt_wire, "time", SimpleNamespace(sleep=rests.append, monotonic=time.monotonic))
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    tap = Tap(ours, split_packets, lambda messages: None)
    theirs.sendall(PINGRESP)
    assert tap.recv(2) == PINGRESP
    assert rests == []
    theirs.sendall(publish(b"t", b"a", 7))
    with pytest.raises(BlockingIOError):
        tap.recv(1)
    assert rests == [mqtt_wire.REST_SECONDS]
    theirs.sendall(publish(b"t", b"full", 7) + publish(b"t", b"x" * 64, 8))
    with pytest.raises(BlockingIOError):
        tap.recv(1)
    assert len(rests) == 1
    tap.close()
    theirs.close()


def test_after_a_packet_that_was_cut_short_nothing_more_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt_wire, "SEND_SECONDS", 0.1)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    tap = Tap(ours, split_answers, lambda answers: None)
    with pytest.raises(TimeoutError, match=r"the broker took nothing for 0\.1 s"):
        tap.send(b"x" * 10_000_000)
    came = theirs.recv(100_000_000, socket.MSG_DONTWAIT)
    assert 0 < len(came) < 10_000_000
    with pytest.raises(ConnectionError, match="a packet was cut short"):
        tap.send(PINGRESP)
    tap.close()
    theirs.close()


def test_a_tap_that_is_stopped_waits_no_longer_for_the_broker() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    tap = Tap(ours, split_answers, lambda answers: None)
    tap.stop()
    assert tap.send(PINGRESP) == 2
    with pytest.raises(ConnectionError, match="the connection is given up"):
        tap.send(b"x" * 10_000_000)
    tap.close()
    theirs.close()
