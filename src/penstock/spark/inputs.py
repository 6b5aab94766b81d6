"""The queues a stage reads, taken together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.queues.cursor import Consumer
from penstock.queues.journal import Taken
from penstock.queues.offsets import Offsets
from penstock.queues.position import Position
from penstock.queues.segment import Segment, Slice
from penstock.queues.topic import TopicCursor
from penstock.scheduling.progress import ANY_SOURCES, SourcesRule
from penstock.spark.turn_input import Portion, TurnInput

Slices = Mapping[str, tuple[Slice, ...]]
SegmentKey = Callable[[Segment], Any]


@dataclass(frozen=True)
class QueueInputs:
    """Consumers by queue; cut segments are written to `slice_dir`."""

    consumers: Mapping[str, Consumer | TopicCursor]
    slice_dir: Path
    sources: SourcesRule = ANY_SOURCES

    @property
    def rows_waiting(self) -> int:
        return sum(consumer.rows_waiting for consumer in self.consumers.values())

    @property
    def ready_since(self) -> float | None:
        times = [consumer.oldest_published for consumer in self.consumers.values()]
        return min((time for time in times if time is not None), default=None)

    @property
    def oldest_arrival(self) -> float | None:
        times = [consumer.oldest_arrival for consumer in self.consumers.values()]
        return min((time for time in times if time is not None), default=None)

    def take(
        self,
        rows: int,
        *,
        whole_segments: bool = False,
        least: int = 1,
        order: Callable[[str], SegmentKey] | None = None,
    ) -> Slices:
        """Exactly `rows` rows, if that many wait: from the queue that has waited longest first.

        With `whole_segments` as many fewer as it takes to end with a segment, or more where that would be
        fewer than `least`. `order` gives the order of the segments of a queue, which only matters where not
        all are taken.
        """
        if rows >= self.rows_waiting:
            order = None
        taken: dict[str, tuple[Slice, ...]] = {}
        by_age = sorted(self.consumers.items(), key=lambda item: item[1].oldest_published or float("inf"))
        for queue, consumer in by_age:
            key = order(queue) if order is not None else None
            wanted = rows
            if whole_segments and rows > 0:
                wanted = consumer.rows_of_whole_segments(rows, least, key)
            pieces = consumer.take(wanted, self.slice_dir, key=key) if wanted > 0 else ()
            taken[queue] = consumer.gather(pieces, self.slice_dir)
            count = sum(piece.rows for piece in taken[queue])
            rows, least = rows - count, max(least - count, 0)
        return taken

    def take_again(self, named: Mapping[str, tuple[Taken, ...]]) -> Slices:
        """The very rows of an earlier grant, after a restart."""
        taken = {}
        for queue, entries in named.items():
            order = {sequence: place for place, (sequence, _, _) in enumerate(entries)}
            rows = sum(count for _, _, count in entries)
            taken[queue] = self.consumers[queue].take(rows, self.slice_dir, key=partial(_place, order))
            came = tuple((piece.segment.sequence, piece.start, piece.rows) for piece in taken[queue])
            if sorted(came) != sorted(entries):
                raise PenstockError(
                    f"queue {queue!r} must still hold the rows granted before the stop, {entries}, "
                    f"has {came}: the turn cannot be repeated; restore the segments, "
                    "or remove the pipeline's state"
                )
        return taken

    def commit(self, slices: Slices) -> dict[str, Position | Offsets]:
        return {queue: self.consumers[queue].commit(pieces) for queue, pieces in slices.items()}

    def give_back(self, slices: Slices) -> None:
        """These rows, taken but not committed, wait again."""
        for queue, pieces in slices.items():
            self.consumers[queue].give_back(pieces)

    def release(self, slices: Slices) -> None:
        for queue, pieces in slices.items():
            self.consumers[queue].release(pieces)

    def tell(self) -> None:
        """Wakes producers that wait for room in these queues."""
        for consumer in self.consumers.values():
            consumer.tell()


def _place(order: Mapping[int, int], segment: Segment) -> int:
    return order.get(segment.sequence, len(order))


def file_lines(slices: tuple[Slice, ...]) -> str:
    """One "size path" line a file, as Penstock's Java classes read them."""
    return "\n".join(
        f"{size} {path}" for piece in slices for path, size in zip(piece.paths, piece.sizes, strict=True)
    )


def turn_input(slices: Slices) -> TurnInput:
    """The same rows for the books."""
    return TurnInput(tuple(Portion.of(piece, queue) for queue, pieces in slices.items() for piece in pieces))
