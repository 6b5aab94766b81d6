"""A consumer's own view of a spool: what waits, what is in flight, and how far it has come."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from penstock.queues.errors import PositionAhead, SliceOrder
from penstock.queues.position import EARLIEST, Position
from penstock.queues.segment import Segment, Slice
from penstock.queues.shelf import Shelf
from penstock.queues.slices import Cutter


class Consumer:
    """One reader of a spool. Rows go from waiting to taken to committed to released, or from taken back.

    Within one segment rows are committed and released in the order they were taken, and given back in
    reverse, since a position counts rows from the segment's start. Anything else is a SliceOrder error.
    """

    def __init__(self, name: str, shelf: Shelf, cutter: Cutter, position: Position = EARLIEST):
        if position.highest >= shelf.next_sequence:
            raise PositionAhead(shelf.name, name, position.highest, shelf.next_sequence - 1)
        self.name = name
        self._shelf = shelf
        self._cutter = cutter
        self._low = position.low
        self._above = {sequence for sequence in position.above if sequence in shelf.segments}
        self._partial: dict[int, int] = {}  # committed rows of segments begun
        self._taken: dict[int, int] = {}  # taken rows of segments not wholly released
        self._released: dict[int, int] = {}  # released rows of segments begun
        self._kept: set[int] = set()  # segments not wholly released
        self._order: list[int] = []  # segments with waiting rows, ascending
        self._by_arrival: list[tuple[float, int]] = []  # heap; may hold segments that wait no more
        self._rows_waiting = 0
        self.rows_offered = 0  # all rows that ever waited here first; never goes down
        self._fresh: list[Segment] | None = None  # came since someone asked
        for sequence in sorted(shelf.segments):
            self._begin(shelf.segments[sequence], position.consumed(shelf.segments[sequence]))

    def _begin(self, segment: Segment, consumed: int) -> None:
        if consumed == segment.rows:
            return
        if consumed:
            for cursor in (self._partial, self._taken, self._released):
                cursor[segment.sequence] = consumed
        self._kept.add(segment.sequence)
        self._enqueue(segment)
        self._rows_waiting += segment.rows - consumed
        self.rows_offered += segment.rows - consumed
        if self._fresh is not None:
            self._fresh.append(segment)

    def _enqueue(self, segment: Segment) -> None:
        bisect.insort(self._order, segment.sequence)
        heapq.heappush(self._by_arrival, (segment.arrivals.oldest, segment.sequence))

    def offer(self, segment: Segment) -> None:
        """A segment was published (the spool calls this, under its lock)."""
        self._begin(segment, 0)

    def take_fresh(self) -> list[tuple[Segment, int]]:
        """The segments that have come since the last call, and how many rows of each wait; at first all."""
        with self._shelf.lock:
            if self._fresh is None:
                self._fresh = [self._shelf.segments[sequence] for sequence in self._order]
            fresh, self._fresh = self._fresh, []
            return [(each, each.rows - self._taken.get(each.sequence, 0)) for each in fresh]

    def needs(self, sequence: int) -> bool:
        """Whether any row of a segment is not yet released."""
        return sequence in self._kept

    def wants(self, sequence: int) -> bool:
        """Whether any row of a segment is not yet committed."""
        return sequence in self._kept and (
            self._committed(self._shelf.segments[sequence]) < self._shelf.segments[sequence].rows
        )

    def tell(self) -> None:
        """Wakes who waits for what this consumer has committed or released."""
        self._shelf.went.tell()

    def leave(self) -> None:
        """Nothing waits any more, and nothing is kept for it (the spool calls this, under its lock)."""
        self._kept.clear()
        self._order.clear()
        self._rows_waiting = 0

    @property
    def rows_waiting(self) -> int:
        return self._rows_waiting

    @property
    def oldest_published(self) -> float | None:
        """When the first waiting segment became visible; None when nothing waits."""
        with self._shelf.lock:
            return self._shelf.segments[self._order[0]].published if self._order else None

    @property
    def oldest_arrival(self) -> float | None:
        """The earliest arrival at the source among the waiting segments; None when nothing waits."""
        with self._shelf.lock:
            while self._by_arrival and not self._waits(self._by_arrival[0][1]):
                heapq.heappop(self._by_arrival)
            return self._by_arrival[0][0] if self._by_arrival else None

    def _waits(self, sequence: int) -> bool:
        segment = self._shelf.segments.get(sequence)
        return segment is not None and sequence in self._kept and self._taken.get(sequence, 0) < segment.rows

    @property
    def position(self) -> Position:
        """What commits have made it so far; for the caller to keep."""
        with self._shelf.lock:
            return Position(self._low, dict(self._partial), frozenset(self._above))

    def waiting(self) -> tuple[tuple[Segment, int], ...]:
        """Each waiting segment and its first waiting row, in order of publication."""
        with self._shelf.lock:
            return tuple((self._shelf.segments[seq], self._taken.get(seq, 0)) for seq in self._order)

    def rows_of_whole_segments(
        self, rows: int, least: int = 0, key: Callable[[Segment], Any] | None = None
    ) -> int:
        """Those of as many segments as make up to `rows`, or of as many as it takes for `least`."""
        with self._shelf.lock:
            whole = 0
            for sequence in self._ordered(key):
                after = whole + self._shelf.segments[sequence].rows - self._taken.get(sequence, 0)
                if whole >= least and after > rows:
                    break
                whole = after
            return whole

    def take(
        self, rows: int | None, slice_dir: Path, *, key: Callable[[Segment], Any] | None = None
    ) -> tuple[Slice, ...]:
        """Exactly `rows` rows, or all that wait if fewer or None; segments in order, or in that of `key`.

        A segment that does not fit is cut: its rows are copied into a new file in `slice_dir`. The rows are
        in flight until commit or give_back. When a cut fails, everything waits again.
        """
        with self._shelf.lock:
            self._shelf.check_open()
            chosen = self._choose(self._rows_waiting if rows is None else rows, key)
        slices: list[Slice] = []
        try:
            for segment, start, count in chosen:
                slices.append(self._cutter.slice(segment, start, count, slice_dir))
        except BaseException:
            self._put_back([(segment, start) for segment, start, _ in chosen])
            self._cutter.drop([path for piece in slices for path in piece.paths])
            raise
        return tuple(slices)

    def gather(self, slices: Sequence[Slice], slice_dir: Path) -> tuple[Slice, ...]:
        """What was taken at once, with many tiny files as one; committed, released or given back together."""
        return self._cutter.gather(slices, slice_dir)

    def _ordered(self, key: Callable[[Segment], Any] | None) -> Sequence[int]:
        if key is None:
            return self._order
        return sorted(self._order, key=lambda sequence: (key(self._shelf.segments[sequence]), sequence))

    def _choose(self, rows: int, key: Callable[[Segment], Any] | None) -> list[tuple[Segment, int, int]]:
        chosen, finished = [], set()
        for sequence in self._ordered(key):
            if rows <= 0:
                break
            segment, start = self._shelf.segments[sequence], self._taken.get(sequence, 0)
            count = min(rows, segment.rows - start)
            rows -= count
            chosen.append((segment, start, count))
            if start + count == segment.rows:
                finished.add(sequence)
        if key is None:
            del self._order[: len(finished)]
        else:
            self._order = [sequence for sequence in self._order if sequence not in finished]
        for segment, start, count in chosen:
            self._taken[segment.sequence] = start + count
            self._rows_waiting -= count
        return chosen

    def _put_back(self, starts: Iterable[tuple[Segment, int]]) -> None:
        with self._shelf.lock:
            for segment, start in starts:
                if self._taken[segment.sequence] == segment.rows:
                    self._enqueue(segment)
                self._rows_waiting += self._taken[segment.sequence] - start
                self._taken[segment.sequence] = start

    def commit(self, slices: Iterable[Slice]) -> Position:
        """The position with these rows behind it. It is in memory only: the caller makes it durable."""
        with self._shelf.lock:
            done = self._advance(
                "commit", slices, self._committed, lambda segment: self._taken.get(segment.sequence, 0)
            )
            for segment, rows in done.values():
                if rows < segment.rows:
                    self._partial[segment.sequence] = rows
                else:
                    self._partial.pop(segment.sequence, None)
                    self._above.add(segment.sequence)
            self._raise_low()
            self._shelf.make_room(done)
            return self.position

    def _committed(self, segment: Segment) -> int:
        if segment.sequence <= self._low or segment.sequence in self._above:
            return segment.rows
        return self._partial.get(segment.sequence, 0)

    def _raise_low(self) -> None:
        """Over what is consumed, and over numbers that no segment has any more."""
        after = self._low + 1
        while after < self._shelf.next_sequence and (
            after in self._above or after not in self._shelf.segments
        ):
            self._above.discard(after)
            self._low = after
            after += 1

    def release(self, slices: Iterable[Slice]) -> None:
        """These committed rows are needed no more: cut files go, and segments that no consumer needs."""
        pieces = tuple(slices)
        with self._shelf.lock:
            self._shelf.check_open()
            done = self._advance(
                "release", pieces, lambda s: self._released.get(s.sequence, 0), self._committed
            )
            whole = []
            for sequence, (segment, rows) in done.items():
                self._released[sequence] = rows
                if rows == segment.rows:
                    self._kept.discard(sequence)
                    del self._released[sequence], self._taken[sequence]
                    whole.append(sequence)
            removed = self._shelf.collect(whole)
        self._shelf.drop_data(removed)
        self._cutter.drop([path for piece in pieces for path in piece.paths])
        self._shelf.went.tell()

    def give_back(self, slices: Iterable[Slice]) -> None:
        """These rows, taken but not committed, wait again where they stood; cut files go."""
        pieces = sorted(slices, key=lambda piece: (piece.segment.sequence, -piece.start))
        with self._shelf.lock:
            ends: dict[int, int] = {}
            for piece in pieces:
                sequence = piece.segment.sequence
                end = ends.get(sequence, self._taken.get(sequence, 0))
                if piece.end != end or piece.start < self._committed(piece.segment):
                    wanted = f"from row {end} backwards to row {self._committed(piece.segment)}"
                    raise SliceOrder(
                        self.name, "give back", sequence, wanted, f"rows {piece.start} to {piece.end}"
                    )
                ends[sequence] = piece.start
            self._put_back((piece.segment, piece.start) for piece in pieces)
        self._cutter.drop([path for piece in pieces for path in piece.paths])
        self._shelf.came.tell()

    def _advance(
        self,
        action: str,
        slices: Iterable[Slice],
        begin: Callable[[Segment], int],
        limit: Callable[[Segment], int],
    ) -> dict[int, tuple[Segment, int]]:
        """Each segment's row count after `slices`, in order; nothing is changed yet, so it may raise."""
        done: dict[int, tuple[Segment, int]] = {}
        for piece in sorted(slices, key=lambda piece: (piece.segment.sequence, piece.start)):
            segment = piece.segment
            start = done[segment.sequence][1] if segment.sequence in done else begin(segment)
            if segment.sequence not in self._kept or piece.start != start or piece.end > limit(segment):
                wanted = f"from row {start} on, up to row {limit(segment)}"
                raise SliceOrder(
                    self.name, action, segment.sequence, wanted, f"rows {piece.start} to {piece.end}"
                )
            done[segment.sequence] = (segment, piece.end)
        return done
