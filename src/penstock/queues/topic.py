"""Kafka topics as a queue: what waits is known from offsets, and a turn takes exact ranges of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.pipeline.kafka import OnLost, Start
from penstock.queues.errors import SliceOrder
from penstock.queues.offsets import Offsets, OffsetsExpired, Reach, TopicMadeAnew
from penstock.queues.segment import Arrivals, Segment, Slice

BYTES_PER_RECORD = 1000
"""What a record is taken to be: its size is not known before it is read."""


Came = Callable[[int], Arrivals]
"""When so many rows that a look found had come to their source; without bins where nobody knows."""


def not_known(rows: int) -> Arrivals:
    return Arrivals()


@dataclass(frozen=True)
class TopicRules:
    """Where a consumer without offsets begins, and what it does when records are gone."""

    start: Start = "earliest"
    on_lost: OnLost = "fail"


@dataclass(frozen=True)
class Loss:
    """Records of a partition that were deleted before they were read, or are passed over since then."""

    partition: str
    rows: int
    went_on_at: int
    dropped: tuple[Slice, ...] = ()


@dataclass
class _Waiting:
    """One partition: the end of what was seen of it, and the pieces that wait, in order."""

    end: int
    pieces: deque[tuple[Segment, int]] = field(default_factory=deque)
    """Segment and its first row that waits."""


class TopicCursor:
    """One reader of some topics. What a look at the broker finds new becomes a segment of each partition.

    Rows go from waiting to taken to committed, or from taken back. A partition is read in order whatever the
    policy says, as Kafka knows one offset for each; a turn takes of every partition by how much waits there.
    Counts are by offsets: compacted topics and transactions leave gaps that count as rows.
    """

    def __init__(self, name: str, rules: TopicRules, offsets: Offsets, came: Came = not_known):
        self.name = name
        self._came = came
        self._rules = rules
        self._partitions: dict[str, _Waiting] = {}
        self._known = dict(offsets.next)
        self._committed = dict(offsets.next)
        self._skips: dict[str, tuple[int, int]] = {}
        """Where rows were lost behind a turn that is under way: from its end on, and to where it goes on."""
        self._first_of: dict[int, int] = {}  # a segment's first offset
        self._fresh: list[Segment] = []
        self._sequence = 0
        self._looked_at: float | None = None
        self._lock = threading.RLock()
        self.rows_offered = 0
        self.rows_lost = 0

    @property
    def rows_waiting(self) -> int:
        with self._lock:
            return sum(each.end - self._next(each) for each in self._partitions.values())

    @property
    def oldest_published(self) -> float | None:
        with self._lock:
            heads = [each.pieces[0][0] for each in self._partitions.values() if each.pieces]
            return min((segment.published for segment in heads), default=None)

    @property
    def oldest_arrival(self) -> float | None:
        with self._lock:
            heads = [each.pieces[0][0] for each in self._partitions.values() if each.pieces]
            return min((segment.arrivals.oldest for segment in heads), default=None)

    @property
    def caught_up(self) -> bool:
        """Whether all that was seen is committed."""
        with self._lock:
            return all(self._committed[name] == each.end for name, each in self._partitions.items())

    @property
    def position(self) -> Offsets:
        with self._lock:
            return Offsets(dict(self._committed))

    def seen(self, reaches: Mapping[str, Reach], now: float) -> list[Loss]:
        """The broker keeps these offsets now. What was lost, where the rules let the consumer go on.

        Raises OffsetsExpired or TopicMadeAnew where they do not.
        """
        with self._lock:
            begins = not self._known
            losses = []
            for partition, reach in sorted(reaches.items()):
                if partition not in self._partitions:
                    self._begin(partition, reach, begins)
                if (loss := self._missing(partition, reach)) is not None:
                    losses.append(loss)
                self._offer(partition, reach, now)
            self._looked_at = now
            return losses

    def _begin(self, partition: str, reach: Reach, begins: bool) -> None:
        """A partition that comes to a topic later is read from its first record on."""
        newest = begins and self._rules.start == "latest"
        offset = self._known.get(partition, reach.end if newest else reach.first)
        self._known[partition] = self._committed[partition] = offset
        self._partitions[partition] = _Waiting(offset)

    def _missing(self, partition: str, reach: Reach) -> Loss | None:
        waiting = self._partitions[partition]
        unread = self._next(waiting)
        if reach.first <= unread and reach.end >= waiting.end:
            return None
        if self._rules.on_lost == "fail":
            anew = reach.end < waiting.end
            raise (TopicMadeAnew if anew else OffsetsExpired)(self.name, partition, unread, reach)
        goal = reach.end if self._rules.on_lost == "latest" else reach.first
        if reach.end < waiting.end:
            # Another topic of that name: no offset of the old one means anything.
            rows, dropped = waiting.end - unread, self._drop(partition, waiting.end)
            waiting.end = self._committed[partition] = goal
            self._skips.pop(partition, None)
        else:
            rows, dropped = goal - unread, self._drop(partition, goal)
            waiting.end = max(waiting.end, goal)
            if self._committed[partition] == unread:
                # No turn is under way that would commit what came before.
                self._committed[partition] = goal
            else:
                self._skips[partition] = (self._skips.get(partition, (unread,))[0], goal)
        self.rows_lost += rows
        return Loss(partition, rows, goal, dropped)

    def _next(self, waiting: _Waiting) -> int:
        """The first offset that was not taken."""
        if not waiting.pieces:
            return waiting.end
        segment, start = waiting.pieces[0]
        return self._first_of[segment.sequence] + start

    def _drop(self, partition: str, until: int) -> tuple[Slice, ...]:
        waiting, dropped = self._partitions[partition], []
        while waiting.pieces and (behind := until - self._next(waiting)) > 0:
            dropped.append(self._cut(partition, behind))
        return tuple(dropped)

    def _offer(self, partition: str, reach: Reach, now: float) -> None:
        waiting = self._partitions[partition]
        rows = reach.end - waiting.end
        if rows <= 0:
            return
        self._sequence += 1
        # They came at some time since the last look, which is when they count from unless more is known.
        since = now if self._looked_at is None else self._looked_at
        came = self._came(rows)
        segment = Segment(
            sequence=self._sequence,
            producer=partition,
            batch=0,
            files=(),
            sizes=(),
            rows=rows,
            arrivals=(came if came.bins else Arrivals.at(since, rows)).scaled(rows),
            published=now,
        )
        self._first_of[segment.sequence] = waiting.end
        waiting.pieces.append((segment, 0))
        waiting.end = reach.end
        self._fresh.append(segment)
        self.rows_offered += rows

    def take_fresh(self) -> list[tuple[Segment, int]]:
        """The segments that have come since the last call, and how many rows of each wait."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
            if not fresh:
                return []
            starts = {
                segment.sequence: start
                for each in self._partitions.values()
                for segment, start in each.pieces
            }
            return [(each, each.rows - starts[each.sequence]) for each in fresh if each.sequence in starts]

    def take(
        self, rows: int, slice_dir: Path | None = None, *, key: Callable[[Segment], Any] | None = None
    ) -> tuple[Slice, ...]:
        """Exactly `rows` rows, if that many wait, of every partition its share; `key` orders nothing here."""
        with self._lock:
            taken: list[Slice] = []
            for partition, share in self._shares(rows).items():
                while share > 0:
                    taken.append(self._cut(partition, share))
                    share -= taken[-1].rows
            return tuple(taken)

    def gather(self, slices: Sequence[Slice], slice_dir: Path | None = None) -> tuple[Slice, ...]:
        """As they are: offsets have no files."""
        return tuple(slices)

    def _shares(self, rows: int) -> dict[str, int]:
        """Rows to take of each partition, by what waits; the rest goes to those that wait longest."""
        waiting = {
            name: each.end - self._next(each) for name, each in self._partitions.items() if each.pieces
        }
        total = sum(waiting.values())
        if rows >= total:
            return waiting
        shares = {name: rows * count // total for name, count in waiting.items()}
        left = rows - sum(shares.values())
        by_age = sorted(waiting, key=lambda name: self._partitions[name].pieces[0][0].sequence)
        for name in by_age[:left]:
            shares[name] += 1
        return shares

    def _cut(self, partition: str, rows: int) -> Slice:
        """Up to `rows` rows of the first piece that waits."""
        waiting = self._partitions[partition]
        segment, start = waiting.pieces.popleft()
        count = min(rows, segment.rows - start)
        if start + count < segment.rows:
            waiting.pieces.appendleft((segment, start + count))
        return self._slice(segment, start, count)

    def _slice(self, segment: Segment, start: int, rows: int) -> Slice:
        offset = self._first_of[segment.sequence] + start
        where = f"{segment.producer.replace('/', ' ')} {offset} {offset + rows}"
        return Slice(
            segment, start, rows, (where,), (rows * BYTES_PER_RECORD,), segment.arrivals.scaled(rows)
        )

    def commit(self, slices: Iterable[Slice]) -> Offsets:
        """The offsets with these rows behind them. In memory only: the caller makes them durable."""
        with self._lock:
            for piece in sorted(slices, key=_place):
                partition, begin = piece.segment.producer, self._first_of[piece.segment.sequence]
                if begin + piece.start < self._committed[partition]:
                    raise SliceOrder(
                        self.name,
                        "commit",
                        piece.segment.sequence,
                        f"from offset {self._committed[partition]} on",
                        f"offset {begin + piece.start}",
                    )
                self._committed[partition] = self._known[partition] = begin + piece.end
                self._skip(partition)
            return self.position

    def _skip(self, partition: str) -> None:
        """A turn has committed up to rows that were lost meanwhile: they are behind it too."""
        until, goal = self._skips.get(partition, (None, 0))
        if self._committed[partition] == until:
            del self._skips[partition]
            self._committed[partition] = goal

    def give_back(self, slices: Iterable[Slice]) -> None:
        """These rows, taken but not committed, wait again where they stood."""
        with self._lock:
            for piece in sorted(slices, key=_place, reverse=True):
                self._skips.pop(piece.segment.producer, None)
                pieces = self._partitions[piece.segment.producer].pieces
                if pieces and pieces[0][0].sequence == piece.segment.sequence:
                    pieces.popleft()
                pieces.appendleft((piece.segment, piece.start))

    def release(self, slices: Iterable[Slice]) -> None:
        """These committed rows are needed no more."""
        with self._lock:
            for piece in slices:
                if piece.end == piece.segment.rows:
                    self._first_of.pop(piece.segment.sequence, None)

    def rows_of_whole_segments(
        self, rows: int, least: int = 0, key: Callable[[Segment], Any] | None = None
    ) -> int:
        """As many as asked for: a record is whole by itself."""
        return rows

    def tell(self) -> None:
        """Nobody waits for room in a topic."""


def _place(piece: Slice) -> tuple[int, int]:
    return piece.segment.sequence, piece.start
