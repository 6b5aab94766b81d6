"""The index of a spool's published segments: who still needs them, and their removal."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from penstock.queues.disk import Disk
from penstock.queues.errors import SpoolClosed
from penstock.queues.listeners import Listeners
from penstock.queues.manifest import parse_segment_name, segment_name
from penstock.queues.recent import RecentRows
from penstock.queues.room import Room
from penstock.queues.segment import Segment


class Reader(Protocol):
    """What the shelf must know of a consumer."""

    def offer(self, segment: Segment) -> None: ...

    def needs(self, sequence: int) -> bool: ...

    def wants(self, sequence: int) -> bool: ...

    def leave(self) -> None: ...


@dataclass
class Shelf:
    """Everything in memory about one spool, behind one lock; nothing here lists a directory.

    The last segment of a producer leaves its manifest in `removed/` when it goes: a rename, which works on a
    full disk too, keeps sequence and batch numbers going after every segment has been removed.
    """

    name: str
    path: Path
    disk: Disk
    lock: threading.Condition
    room: Room
    came: Listeners = field(default_factory=Listeners)
    """To rows that wait: published, or given back."""
    went: Listeners = field(default_factory=Listeners)
    """To room that is free: rows were committed, released or removed."""
    recent: RecentRows = field(default_factory=RecentRows)
    segments: dict[int, Segment] = field(default_factory=dict)
    next_sequence: int = 1
    last: dict[str, tuple[int, int]] = field(default_factory=dict)
    tombs: dict[str, str] = field(default_factory=dict)
    readers: dict[str, Reader] = field(default_factory=dict)
    rows: int = 0
    bytes: int = 0
    closed: bool = False
    # Counted out of the room already, as every reader has committed them; still kept for some.
    spared: set[int] = field(default_factory=set)
    # Names that were subscribed in an earlier opening and are not back yet: nothing is removed before.
    absent: set[str] = field(default_factory=set)
    # True while segments may lie here that every reader had released before it was subscribed.
    unswept: bool = False

    def check_open(self) -> None:
        if self.closed:
            raise SpoolClosed(self.name)

    def place(self, segment: Segment) -> None:
        """Makes a segment visible to every reader. Its manifest is in place; the caller holds the lock."""
        self.segments[segment.sequence] = segment
        self.next_sequence = max(self.next_sequence, segment.sequence + 1)
        self.rows += segment.rows
        self.bytes += segment.bytes
        self.last[segment.producer] = (segment.sequence, segment.batch)
        for reader in self.readers.values():
            reader.offer(segment)

    def collect(self, released: Iterable[int]) -> list[Segment]:
        """Takes the manifests away of those segments that no reader needs; the caller holds the lock.

        The data files are left to the caller, outside of the lock: without a manifest they are nobody's.
        """
        if not self.readers:
            return []
        if self.absent:
            self.unswept = True
            return []
        if self.unswept:
            released, self.unswept = list(self.segments), False
        readers = self.readers.values()
        free = [n for n in released if n in self.segments and not any(r.needs(n) for r in readers)]
        return [self._remove(self.segments[sequence]) for sequence in free]

    def remove_published_by(self, time: float) -> list[Segment]:
        """Takes the manifests away of all segments that were published by then; the caller holds the lock."""
        return [self._remove(each) for each in tuple(self.segments.values()) if each.published <= time]

    def _remove(self, segment: Segment) -> Segment:
        name = segment_name(segment.sequence, segment.producer, segment.batch)
        manifest = self.path / "segments" / name
        if self.last[segment.producer][0] == segment.sequence:
            self.disk.rename(manifest, self.path / "removed" / name)
            before = self.tombs.get(segment.producer)
            self.tombs[segment.producer] = name
            if before:
                self.disk.remove(self.path / "removed" / before)
        else:
            self.disk.remove(manifest)
        del self.segments[segment.sequence]
        self.rows -= segment.rows
        self.bytes -= segment.bytes
        return segment

    def make_room(self, sequences: Iterable[int]) -> None:
        """Counts out what every reader has committed; the caller holds the lock.

        A held stage keeps its last rows until its next turn, which never came if its producer waited
        for their room.
        """
        # Who is not back yet has not committed anything; without any reader everything is kept.
        if self.absent or not self.readers:
            return
        for sequence in sequences:
            if sequence not in self.segments or sequence in self.spared:
                continue
            if not any(reader.wants(sequence) for reader in self.readers.values()):
                self.spared.add(sequence)
                self.room.free(self.segments[sequence].bytes)

    def need_again(self, reader: Reader) -> None:
        """Counts in again what a new reader wants of that which all others had committed; with the lock."""
        for sequence in [each for each in self.spared if reader.wants(each)]:
            self.spared.discard(sequence)
            self.room.occupy(self.segments[sequence].bytes)

    def drop_data(self, removed: Iterable[Segment]) -> None:
        """Removes data files whose manifests are gone, and gives their room back."""
        for segment in removed:
            self.recent.forget(segment.files)
            for file in segment.files:
                self.disk.remove(self.path / file)
            if segment.sequence in self.spared:
                self.spared.discard(segment.sequence)
            else:
                self.room.free(segment.bytes)

    def bury(self, removed: Iterable[str], set_aside: Iterable[str]) -> None:
        """Takes up the numbers in the names of removed and set aside segments; outdated names go."""
        for name in sorted(removed, reverse=True):  # the newest first: it outdates the others of its producer
            producer = self._take_numbers(name)
            if producer:
                self.tombs[producer] = name
            else:
                self.disk.remove(self.path / "removed" / name)
        for name in set_aside:
            self._take_numbers(name)

    def _take_numbers(self, name: str) -> str | None:
        parsed = parse_segment_name(name)
        if parsed is None:
            return None
        sequence, producer, batch = parsed
        self.next_sequence = max(self.next_sequence, sequence + 1)
        if self.last.get(producer, (0, 0))[0] >= sequence:
            return None
        self.last[producer] = (sequence, batch)
        return producer
