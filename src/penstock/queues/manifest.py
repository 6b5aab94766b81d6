"""Manifests: what stands in them, how they are named, and how a damaged one is told from a whole one."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.queues.errors import CorruptSegment
from penstock.queues.segment import Arrivals, Context, EventRanges, Segment

MAX_NAME = 160
_SEGMENT = re.compile(r"(\d{12,})-(.+)-(\d+)\.json")
_HEAD = re.compile(r'\{"check": "([0-9a-f]{8})", ')


@dataclass(frozen=True)
class Pending:
    """A segment that is written and not yet published. `name` is what `Spool.publish` takes."""

    producer: str
    batch: int
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: int
    arrivals: Arrivals
    event_ranges: EventRanges = field(default_factory=dict)
    context: Context = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{file_name(self.producer)}-{self.batch}"

    @property
    def bytes(self) -> int:
        return sum(self.sizes)

    def published_as(self, sequence: int, published: float) -> Segment:
        return Segment(
            sequence,
            self.producer,
            self.batch,
            self.files,
            self.sizes,
            self.rows,
            self.arrivals,
            published,
            self.event_ranges,
            self.context,
        )


def file_name(producer: str) -> str:
    """The producer's name in letters, digits, `.`, `_` and `-`; other bytes as `~` and two hex digits."""
    if not producer:
        raise ValueError("a producer must have a name, got '': its batches could not be told apart")
    name = re.sub(rb"[^A-Za-z0-9._-]", lambda byte: b"~%02x" % byte[0][0], producer.encode()).decode()
    if len(name) > MAX_NAME:
        raise ValueError(
            f"a producer's name must fit {MAX_NAME} bytes in a file name, got {len(name)}: {producer!r}"
        )
    return name


def producer_name(name: str) -> str:
    """The inverse of `file_name`."""
    raw = re.sub(rb"~([0-9a-f]{2})", lambda code: bytes.fromhex(code[1].decode()), name.encode())
    return raw.decode(errors="replace")


def data_name(counter: int, producer: str, opening: str) -> str:
    """A data file's name, never used twice; it begins with a digit, as Spark skips those with `_` or `.`."""
    return f"{counter:06d}-{file_name(producer)}-{opening}.parquet"


def segment_name(sequence: int, producer: str, batch: int) -> str:
    return f"{sequence:012d}-{file_name(producer)}-{batch}.json"


def parse_segment_name(name: str) -> tuple[int, str, int] | None:
    """(sequence, producer, batch), or None for a name that no segment has."""
    match = _SEGMENT.fullmatch(name)
    return (int(match[1]), producer_name(match[2]), int(match[3])) if match else None


def dump(pending: Pending) -> bytes:
    """JSON that begins with a checksum of the rest. The sequence is left to the file's name, the time to its
    modification time: so publication is one rename."""
    fields = {
        "producer": pending.producer,
        "batch": pending.batch,
        "files": pending.files,
        "sizes": pending.sizes,
        "rows": pending.rows,
        "arrivals": pending.arrivals.to_json(),
        "event_ranges": pending.event_ranges,
    }
    if pending.context:
        fields["context"] = dict(pending.context)
    body = json.dumps(fields)[1:]
    return f'{{"check": "{zlib.crc32(body.encode()):08x}", {body}\n'.encode()


def load(path: Path) -> Pending:
    """The manifest in `path`; CorruptSegment when it is not what `dump` wrote."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        text = ""
    head = _HEAD.match(text)
    if head is None:
        raise CorruptSegment(path, "must hold a manifest", f"got {path.stat().st_size} bytes that are none")
    body = text[head.end() :].removesuffix("\n")
    if zlib.crc32(body.encode()) != int(head[1], 16):
        raise CorruptSegment(
            path, f"must match its checksum {head[1]}", f"got {zlib.crc32(body.encode()):08x}"
        )
    return _from_json(json.loads("{" + body))


def _from_json(fields: Mapping[str, Any]) -> Pending:
    return Pending(
        producer=fields["producer"],
        batch=fields["batch"],
        files=tuple(fields["files"]),
        sizes=tuple(fields["sizes"]),
        rows=fields["rows"],
        arrivals=Arrivals.from_json(fields["arrivals"]),
        event_ranges={name: (low, high) for name, (low, high) in fields["event_ranges"].items()},
        context=fields.get("context", {}),
    )
