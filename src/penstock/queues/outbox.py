"""How rows get into a spool: written first, published by one rename."""

from __future__ import annotations

import contextlib
import errno
import itertools
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from penstock.queues.errors import DiskFull, SpoolError
from penstock.queues.manifest import Pending, data_name, dump, segment_name
from penstock.queues.parquet import encode, event_ranges, merge_ranges
from penstock.queues.segment import Arrivals, Context, Segment
from penstock.queues.shelf import Shelf
from penstock.queues.slices import TINY_BYTES, checked_footer

NO_CONTEXT: Context = MappingProxyType({})


@dataclass
class Outbox:
    """Writes segments and puts them on the shelf. Data files lie under their final name before any manifest
    names them; one that no manifest names is nobody's and goes at the next opening."""

    shelf: Shelf
    clock: Callable[[], float]
    pending: dict[str, Pending] = field(default_factory=dict)
    _opening: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    _counter: itertools.count[int] = field(default_factory=itertools.count)

    def append(
        self,
        table: pa.Table,
        producer: str,
        arrivals: Arrivals | None,
        timeout: float | None,
        context: Context = NO_CONTEXT,
    ) -> Segment:
        """Waits for room, then writes and publishes in one go."""
        content = memoryview(encode(table))
        ranges = event_ranges(table)
        self.shelf.room.reserve(content.nbytes, timeout)
        with self._data_file(producer, content) as file:
            self._remember(file, table, content)
            rows = table.num_rows
            arrived = self._arrivals(arrivals, rows)
            # The batch is numbered under the lock, as others may append at the same time.
            new = Pending(producer, -1, (file,), (content.nbytes,), rows, arrived, ranges, context)
            return self._publish_new(new)

    def _publish_new(self, new: Pending) -> Segment:
        shelf = self.shelf
        with shelf.lock:
            shelf.check_open()
            pending = replace(new, batch=shelf.last.get(new.producer, (0, -1))[1] + 1)
            with self._manifest(pending) as manifest:
                return self._place(pending, manifest, self.clock())

    def write(
        self,
        table: pa.Table,
        producer: str,
        batch: int,
        arrivals: Arrivals | None,
        context: Context = NO_CONTEXT,
    ) -> Pending:
        """Writes a pending segment; without rows it is a manifest alone."""
        rows = table.num_rows
        if rows == 0:
            return self._keep(Pending(producer, batch, (), (), 0, Arrivals()))
        content = memoryview(encode(table))
        self.shelf.room.occupy(content.nbytes)
        with self._data_file(producer, content) as file:
            self._remember(file, table, content)
            arrived = self._arrivals(arrivals, rows)
            sizes = (content.nbytes,)
            ranges = event_ranges(table)
            return self._keep(Pending(producer, batch, (file,), sizes, rows, arrived, ranges, context))

    def adopt(
        self,
        files: Sequence[Path],
        producer: str,
        batch: int,
        arrivals: Arrivals | None,
        rows: int | None,
        context: Context = NO_CONTEXT,
    ) -> Pending:
        """Moves finished Parquet files in as a pending segment."""
        footers = {file: checked_footer(file) for file in files}
        counted = sum(footer.rows for footer in footers.values())
        if rows is not None and rows != counted:
            raise SpoolError(
                f"batch {batch} of {producer!r} must bring the {rows} rows announced, got {counted} in its "
                "files: nothing was moved; run the turn again"
            )
        full = [file for file in files if footers[file].rows]
        sizes = tuple(file.stat().st_size for file in full)
        with self._moved(full, producer, sum(sizes)) as names:
            ranges = merge_ranges([footers[file] for file in full])
            arrived = self._arrivals(arrivals, counted)
            pending = self._keep(Pending(producer, batch, names, sizes, counted, arrived, ranges, context))
        for file in set(files).difference(full):
            self.shelf.disk.remove(file)
        return pending

    def publish(self, name: str, now: float | None) -> Segment | None:
        """None when nothing is pending under this name, or nothing with rows."""
        with self.shelf.lock:
            self.shelf.check_open()
            pending = self.pending.get(name)
            if pending is None:
                return None
            segment = None
            if pending.rows:
                segment = self._place(pending, self.path_of(name), self.clock() if now is None else now)
            else:
                self.shelf.disk.remove(self.path_of(name))
            del self.pending[name]
            return segment

    def discard(self, keep: Collection[str]) -> tuple[str, ...]:
        """Manifests first: a crash in between leaves data files that nobody names."""
        with self.shelf.lock:
            self.shelf.check_open()
            gone = [pending for name, pending in self.pending.items() if name not in keep]
            for pending in gone:
                self.shelf.disk.remove(self.path_of(pending.name))
                del self.pending[pending.name]
        for pending in gone:
            self._drop(pending.files, pending.bytes)
        return tuple(pending.name for pending in gone)

    def path_of(self, name: str) -> Path:
        return self.shelf.path / "pending" / f"{name}.json"

    def _arrivals(self, arrivals: Arrivals | None, rows: int) -> Arrivals:
        """As many as there are rows; now, when nothing is known."""
        return (
            arrivals.scaled(rows)
            if arrivals is not None and arrivals.bins
            else Arrivals.at(self.clock(), rows)
        )

    def _place(self, pending: Pending, manifest: Path, now: float) -> Segment:
        """The publication: one rename; the caller holds the lock."""
        shelf = self.shelf
        segment = pending.published_as(shelf.next_sequence, round(now, 6))
        shelf.disk.stamp(manifest, now)
        name = segment_name(segment.sequence, segment.producer, segment.batch)
        shelf.disk.rename(manifest, shelf.path / "segments" / name)
        shelf.place(segment)
        return segment

    def _keep(self, pending: Pending) -> Pending:
        with self.shelf.lock:
            self.shelf.check_open()
            with self._manifest(pending) as manifest:
                self.shelf.disk.rename(manifest, self.path_of(pending.name))
            before = self.pending.get(pending.name)
            self.pending[pending.name] = pending
        if before is not None:
            self._drop(before.files, before.bytes)
        return pending

    @contextlib.contextmanager
    def _manifest(self, pending: Pending) -> Iterator[Path]:
        """A manifest under a name that no opening believes; it goes when the block fails."""
        path = self.shelf.path / "pending" / f"{pending.name}.{next(self._counter)}.tmp"
        content = dump(pending)
        with self._clear_when_full(path, len(content)):
            self.shelf.disk.write(path, content)
        try:
            yield path
        except BaseException:
            self.shelf.disk.remove(path)
            raise

    @contextlib.contextmanager
    def _data_file(self, producer: str, content: memoryview) -> Iterator[str]:
        """A data file for room already counted; file and room go when the block fails."""
        file = self._new_file(producer)
        try:
            with self._clear_when_full(self.shelf.path / file, content.nbytes):
                self.shelf.disk.write(self.shelf.path / file, content)
            yield file
        except BaseException:
            self._drop((file,), content.nbytes)
            raise

    @contextlib.contextmanager
    def _moved(self, files: Sequence[Path], producer: str, size: int) -> Iterator[tuple[str, ...]]:
        """Files moved in; when the block fails they are back where they were, to be tried again."""
        moved: list[tuple[Path, Path]] = []
        self.shelf.room.occupy(size)
        try:
            for file in files:
                target = self.shelf.path / self._new_file(producer)
                with self._clear_when_full(target, size):
                    self.shelf.disk.move_in(file, target)
                moved.append((file, target))
            yield tuple(f"data/{target.name}" for _, target in moved)
        except BaseException:
            self.shelf.room.free(size)
            for file, target in moved:
                self.shelf.disk.move_in(target, file)
            raise

    def _new_file(self, producer: str) -> str:
        return f"data/{data_name(next(self._counter), producer, self._opening)}"

    def _remember(self, file: str, table: pa.Table, content: memoryview) -> None:
        """Rows so few that a turn may gather them with others, which it does not where writes are synced."""
        if content.nbytes <= TINY_BYTES and not self.shelf.disk.fsync:
            self.shelf.recent.keep(file, table)

    def _drop(self, files: Sequence[str], size: int) -> None:
        self.shelf.recent.forget(files)
        for file in files:
            self.shelf.disk.remove(self.shelf.path / file)
        self.shelf.room.free(size)

    @contextlib.contextmanager
    def _clear_when_full(self, path: Path, size: int) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFull(self.shelf.name, path, size) from error
            raise
