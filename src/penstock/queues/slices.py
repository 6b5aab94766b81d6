"""Cutting a segment: the files that hold just the rows asked for."""

from __future__ import annotations

import errno
import itertools
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from penstock.queues.disk import Disk
from penstock.queues.errors import CorruptSegment, DiskFull
from penstock.queues.parquet import Footer, encode, event_ranges, merge_ranges, read_footer, read_rows
from penstock.queues.recent import RecentRows
from penstock.queues.segment import Segment, Slice

# Spark takes 2 ms to open a file, however small, and 16 of them are read and written anew here in 7 ms.
FEW_FILES, TINY_BYTES = 4, 65_536
# Rows on several slots are shared among them by the file.
GATHERED_ROWS = 10_000


@dataclass
class Cutter:
    """Makes slices of the segments of one spool. Names of cut files are never used twice."""

    spool: str
    path: Path
    disk: Disk
    recent: RecentRows = field(default_factory=RecentRows)
    _opening: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    _counter: itertools.count[int] = field(default_factory=itertools.count)

    def slice(self, segment: Segment, start: int, rows: int, slice_dir: Path) -> Slice:
        """Rows `start` to `start + rows`; files wanted whole are named where they are, not copied."""
        if rows == segment.rows:
            paths = tuple(str(self.path / file) for file in segment.files)
            return Slice(segment, 0, rows, paths, segment.sizes, segment.arrivals, segment.event_ranges)
        parts: list[tuple[Path, int, Footer]] = []
        try:
            for part in self._parts(segment, start, rows, slice_dir):
                parts.append(part)  # noqa: PERF402 - those made before an error must go
        except BaseException:
            self.drop([str(path) for path, _, _ in parts])
            raise
        paths = tuple(str(path) for path, _, _ in parts)
        sizes = tuple(size for _, size, _ in parts)
        ranges = merge_ranges([footer for _, _, footer in parts])
        return Slice(segment, start, rows, paths, sizes, segment.arrivals.scaled(rows), ranges)

    def _parts(
        self, segment: Segment, start: int, rows: int, slice_dir: Path
    ) -> Iterator[tuple[Path, int, Footer]]:
        if len(segment.files) == 1:  # the footer would tell nothing new
            yield self._cut(segment, self.path / segment.files[0], start, rows, slice_dir)
            return
        first = 0
        for file, size in zip(segment.files, segment.sizes, strict=True):
            path = self.path / file
            footer = checked_footer(path)
            low, high = max(start, first), min(start + rows, first + footer.rows)
            if high - low == footer.rows:
                yield path, size, footer
            elif high > low:
                yield self._cut(segment, path, low - first, high - low, slice_dir)
            first += footer.rows

    def _cut(
        self, segment: Segment, path: Path, start: int, rows: int, slice_dir: Path
    ) -> tuple[Path, int, Footer]:
        try:
            table = read_rows(path, start, rows)
        except (OSError, pa.ArrowException) as error:
            raise CorruptSegment(path, "must be whole Parquet", f"reading it failed ({error})") from error
        content = memoryview(encode(table))
        target = self._write(segment, content, slice_dir)
        return target, content.nbytes, Footer(rows, event_ranges(table))

    def _write(self, segment: Segment, content: memoryview, slice_dir: Path) -> Path:
        target = slice_dir / f"{segment.sequence:012d}-{next(self._counter):06d}-{self._opening}.parquet"
        try:
            slice_dir.mkdir(parents=True, exist_ok=True)
            self.disk.write(target, content)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFull(self.spool, target, content.nbytes) from error
            raise
        return target

    def gather(self, slices: Sequence[Slice], slice_dir: Path) -> tuple[Slice, ...]:
        """The same slices; where many tiny files follow each other, the first slice names one with all rows.

        They must go on together from here. Files that cannot be read stay as they are: who reads them for the
        turn says what is wrong. Where writes are synced to the disk nothing is gathered: that takes longer.
        """
        if self.disk.fsync:
            return tuple(slices)
        return tuple(piece for run in _tiny_runs(slices) for piece in self._as_one(run, slice_dir))

    def _as_one(self, run: Sequence[Slice], slice_dir: Path) -> Iterable[Slice]:
        if len(run) < FEW_FILES:
            return run
        try:
            tables = [self._rows(piece) for piece in run]
            if not _alike(tables):
                # A file has fewer types than rows in memory: nanoseconds, for one, are microseconds there.
                tables = [read_rows(Path(piece.paths[0]), 0, piece.rows) for piece in run]
            if not _alike(tables):
                return run
            content = memoryview(encode(pa.concat_tables(tables)))
            target = self._write(run[0].segment, content, slice_dir)
        except (OSError, DiskFull, pa.ArrowException):
            return run
        self.drop([path for piece in run for path in piece.paths])
        first = replace(run[0], paths=(str(target),), sizes=(content.nbytes,))
        return (first, *(replace(piece, paths=(), sizes=()) for piece in run[1:]))

    def _rows(self, piece: Slice) -> pa.Table:
        [path] = piece.paths
        known = self.recent.rows(path)
        return read_rows(Path(path), 0, piece.rows) if known is None else known

    def drop(self, paths: list[str] | tuple[str, ...]) -> None:
        """Removes cut files; the segments' own files stay."""
        own = self.path / "data"
        for path in map(Path, paths):
            if path.parent != own:
                self.disk.remove(path)


def _tiny_runs(slices: Sequence[Slice]) -> Iterator[list[Slice]]:
    """Slices that follow each other and are one tiny file each, up to a number of rows; all others alone."""
    run: list[Slice] = []
    for piece in slices:
        tiny = len(piece.paths) == 1 and piece.bytes <= TINY_BYTES
        if run and (not tiny or sum(each.rows for each in run) + piece.rows > GATHERED_ROWS):
            yield run
            run = []
        if tiny:
            run.append(piece)
        else:
            yield [piece]
    if run:
        yield run


def _alike(tables: Sequence[pa.Table]) -> bool:
    return all(table.schema == tables[0].schema for table in tables)


def checked_footer(path: Path) -> Footer:
    """The footer of a data file; CorruptSegment when there is none."""
    try:
        return read_footer(path)
    except (OSError, pa.ArrowException) as error:
        raise CorruptSegment(path, "must be whole Parquet", f"its footer cannot be read ({error})") from error
