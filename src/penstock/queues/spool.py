"""A queue as a directory of Parquet segments."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, unquote

import pyarrow as pa

from penstock.queues.cursor import Consumer
from penstock.queues.disk import Disk
from penstock.queues.errors import CorruptSegment, SpoolError
from penstock.queues.listeners import Listener
from penstock.queues.manifest import Pending, load
from penstock.queues.outbox import NO_CONTEXT, Outbox
from penstock.queues.owner import OwnerLock
from penstock.queues.parquet import event_ranges
from penstock.queues.position import EARLIEST, Position
from penstock.queues.recovery import scan, tidy
from penstock.queues.room import Room, WhenFull
from penstock.queues.segment import SOURCES, Arrivals, Context, Segment
from penstock.queues.shelf import Shelf
from penstock.queues.slices import Cutter

_log = logging.getLogger(__name__)


class Spool:
    """An ordered, durable log of immutable segments in one directory, owned by one process at a time.

    A segment is published by one rename of its manifest, so a crash leaves it wholly there or not at all.
    Opening clears away what a crash left half done, and raises CorruptSegment for damage; with `quarantine`
    it sets damaged segments aside instead, and lists them in `quarantined`.
    The size limit binds `append`; a turn's output (`write_pending`, `adopt_pending`) is always taken, so that
    a turn never blocks while it holds a slot: ask `free_bytes` before granting it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        limit_bytes: int | None = None,
        when_full: WhenFull = "wait",
        fsync: bool = False,
        quarantine: bool = False,
        clock: Callable[[], float] = time.time,
        disk: Disk | None = None,
    ):
        self.path = Path(path).absolute()
        self.name = name or self.path.name
        self._clock = clock
        disk = disk or Disk(fsync)
        self.fsync = disk.fsync
        self._lock = threading.Condition(threading.RLock())
        self._room = Room(self.name, limit_bytes, when_full, self._lock)
        self._shelf = Shelf(self.name, self.path, disk, self._lock, self._room)
        self._outbox = Outbox(self._shelf, clock)
        self._cutter = Cutter(self.name, self.path, disk, self._shelf.recent)
        self._detached: set[str] = set()
        self._owner = OwnerLock(self.path)
        try:
            self.quarantined = self._recover(disk, quarantine)
        except BaseException:
            self._owner.release()
            raise

    def _recover(self, disk: Disk, quarantine: bool) -> tuple[CorruptSegment, ...]:
        found = scan(self.path)
        tidy(found, self.path, disk, quarantine)
        for segment in found.segments:
            self._shelf.place(segment)
        self._shelf.bury(found.removed, found.set_aside)
        self._shelf.absent = {unquote(name) for name in os.listdir(self.path / "consumers")}
        self._outbox.pending = found.pending
        self._room.occupy(self._shelf.bytes + sum(pending.bytes for pending in found.pending.values()))
        for error, _ in found.corrupt:
            _log.warning("set aside in %s: %s", self.path / "quarantine", error)
        return tuple(error for error, _ in found.corrupt)

    @property
    def rows(self) -> int:
        """Rows of all published segments, consumed in part or not."""
        return self._shelf.rows

    @property
    def bytes(self) -> int:
        """Bytes of all published segments."""
        return self._shelf.bytes

    @property
    def free_bytes(self) -> int | None:
        """What an append may still bring, pending segments counted; None without a limit."""
        return self._room.free_bytes

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All published segments, in order of publication."""
        with self._lock:
            return tuple(self._shelf.segments.values())

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What is written and not yet published."""
        with self._lock:
            return tuple(self._outbox.pending.values())

    def last_batch(self, producer: str) -> int | None:
        """The batch of a producer's newest published segment, removed or not; None when it never published.

        A turn that runs again after a crash finds here that its output is out already.
        """
        with self._lock:
            last = self._shelf.last.get(producer)
            return None if last is None else last[1]

    def last_context(self, producer: str) -> Context:
        """What a producer sent along with its newest published segment, removed or not."""
        with self._lock:
            sequence = self._shelf.last.get(producer, (0, 0))[0]
            if sequence in self._shelf.segments:
                return self._shelf.segments[sequence].context
            removed = self._shelf.tombs.get(producer)
            return NO_CONTEXT if removed is None else load(self.path / "removed" / removed).context

    def append(
        self,
        table: pa.Table,
        *,
        producer: str = "append",
        arrivals: Arrivals | None = None,
        timeout: float | None = None,
        context: Context = NO_CONTEXT,
    ) -> Segment:
        """Publishes `table` as the producer's next batch; without `arrivals` its rows arrive now.

        An empty table publishes nothing: the segment returned has no rows and sequence 0.
        """
        self._shelf.check_open()
        if table.num_rows == 0:
            return Segment(0, producer, 0, (), (), 0, Arrivals(), self._clock())
        segment = self._outbox.append(table, producer, arrivals, timeout, context)
        self._shelf.came.tell()
        return segment

    def append_together(
        self,
        tables: Mapping[str, pa.Table],
        *,
        arrivals: Arrivals | None = None,
        timeout: float | None = None,
    ) -> Segment:
        """Publishes rows of several sources, by their names, as one segment: one file for all of them.

        How far each source has come is kept apart, as if each had appended its rows as a producer.
        """
        full = {source: table for source, table in tables.items() if table.num_rows}
        ranges = {source: dict(event_ranges(table)) for source, table in full.items()}
        rows = _as_one(full) if full else pa.table({})
        return self.append(rows, arrivals=arrivals, timeout=timeout, context={SOURCES: ranges})

    def write_pending(
        self,
        table: pa.Table,
        producer: str,
        batch: int,
        arrivals: Arrivals | None = None,
        context: Context = NO_CONTEXT,
    ) -> Pending:
        """Writes a turn's output, seen by nobody until `publish`; replaces what is pending under its batch.

        `arrivals` may be those of the turn's input: they are scaled to the rows written.
        """
        self._shelf.check_open()
        return self._outbox.write(table, producer, batch, arrivals, context)

    def adopt_pending(
        self,
        files: Sequence[str | Path],
        producer: str,
        batch: int,
        arrivals: Arrivals | None = None,
        rows: int | None = None,
        context: Context = NO_CONTEXT,
    ) -> Pending:
        """As write_pending, for Parquet files, moved in in the order given; files without rows are removed.

        When it fails the files are back where they were.
        """
        self._shelf.check_open()
        return self._outbox.adopt([Path(file) for file in files], producer, batch, arrivals, rows, context)

    def publish(self, pending_name: str, now: float | None = None) -> Segment | None:
        """Makes a pending segment visible, by one rename.

        None when there is nothing to do: it was published before, so redoing is harmless, or it has no rows.
        """
        segment = self._outbox.publish(pending_name, now)
        if segment is not None:
            self._shelf.came.tell()
        return segment

    def pending_path(self, name: str) -> Path:
        """Where a pending segment lies under its name until it is published."""
        return self._outbox.path_of(name)

    def discard_pending(self, keep: Collection[str] = ()) -> tuple[str, ...]:
        """Removes what is pending under any other name than those in `keep`; the names that went."""
        return self._outbox.discard(keep)

    def subscribe(self, consumer: str, position: Position = EARLIEST) -> Consumer:
        """A consumer that goes on from `position`.

        Segments are kept for everyone who ever subscribed, until `unsubscribe`: after reopening nothing is
        removed before all of them are back.
        """
        with self._lock:
            self._shelf.check_open()
            if consumer in self._shelf.readers and consumer not in self._detached:
                raise SpoolError(
                    f"consumers of spool {self.name!r} must have names of their own, got {consumer!r} twice: "
                    "each would miss rows that the other took"
                )
            self._detached.discard(consumer)
            self._mark(consumer).touch()
            self._shelf.absent.discard(consumer)
            reader = Consumer(consumer, self._shelf, self._cutter, position)
            self._shelf.readers[consumer] = reader
            self._shelf.need_again(reader)
            # Nothing was counted out while it was away.
            self._shelf.make_room(self._shelf.segments)
            self._shelf.unswept = True
            return reader

    def _mark(self, consumer: str) -> Path:
        """A file that outlives this opening: what the consumer has not read is kept until it is back."""
        return self.path / "consumers" / quote(consumer, safe="")

    def detach(self, consumer: str) -> None:
        """The consumer is away and comes back: what it has not released is kept until it subscribes again."""
        with self._lock:
            self._detached.add(consumer)

    def unsubscribe(self, consumer: str) -> None:
        """Segments are no longer kept for this consumer, not even those it has in flight.

        Without any consumer, everything is kept.
        """
        with self._lock:
            self._shelf.check_open()
            self._mark(consumer).unlink(missing_ok=True)
            self._shelf.absent.discard(consumer)
            reader = self._shelf.readers.pop(consumer, None)
            if reader is not None:
                reader.leave()
            removed = self._shelf.collect(list(self._shelf.segments))
            self._shelf.make_room(self._shelf.segments)
        self._shelf.drop_data(removed)
        self._shelf.went.tell()

    def clear(self, published_by: float) -> int:
        """Removes what was published by then, though nobody has read it; how many rows that were.

        Only where nobody reads, as from a queue of dead letters.
        """
        with self._lock:
            self._shelf.check_open()
            if readers := sorted(self._shelf.readers.keys() | self._shelf.absent):
                raise SpoolError(
                    f"a spool must have no consumers to be cleared, but {self.name!r} has {readers}: "
                    "they would miss rows; nothing was removed"
                )
            removed = self._shelf.remove_published_by(published_by)
        self._shelf.drop_data(removed)
        self._shelf.went.tell()
        return sum(each.rows for each in removed)

    def add_listener(self, listener: Listener, *, to_room: bool = False) -> None:
        """Called without arguments and without the lock, whenever rows were published or given back.

        `to_room`: whenever some were committed, released or removed instead, so that more may fit.
        """
        (self._shelf.went if to_room else self._shelf.came).add(listener)

    def remove_listener(self, listener: Listener) -> None:
        self._shelf.came.remove(listener)
        self._shelf.went.remove(listener)

    def close(self) -> None:
        """Wakes waiting producers with SpoolClosed and lets another process open the directory."""
        with self._lock:
            self._shelf.closed = True
            self._room.close()
            self._owner.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _as_one(tables: Mapping[str, pa.Table]) -> pa.Table:
    first, *others = tables
    for name in others:
        if not tables[name].schema.equals(tables[first].schema):
            raise SpoolError(
                f"rows that come together must have the same columns, got {tables[name].schema.names} of "
                f"{name!r} and {tables[first].schema.names} of {first!r}, or other types: cast them to one "
                "schema"
            )
    return pa.concat_tables(tables.values())
