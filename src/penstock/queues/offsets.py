"""How far a consumer of Kafka topics has come, and what a broker still keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import PenstockError


@dataclass(frozen=True)
class Offsets:
    """The next offset of each partition, by "topic/partition"."""

    next: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"offsets": dict(self.next)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Offsets:
        return cls({str(partition): int(offset) for partition, offset in fields["offsets"].items()})


@dataclass(frozen=True)
class Reach:
    """The offsets that a broker keeps of a partition: from `first` up to `end`, which comes next."""

    first: int
    end: int


class RecordsGone(PenstockError):
    """Records that were to be read next, and that the broker no longer has."""

    def __init__(self, partition: str, unread: int, reach: Reach, text: str):
        self.partition = partition
        self.unread = unread
        self.reach = reach
        super().__init__(
            f"{text}: the pipeline stops. Set on_lost to 'earliest' to go on with what is left, "
            "or to 'latest' for what comes from now on, and resume it"
        )


class OffsetsExpired(RecordsGone):
    """The broker deleted records, by their age or size, before they were read."""

    def __init__(self, queue: str, partition: str, unread: int, reach: Reach):
        super().__init__(
            partition,
            unread,
            reach,
            f"partition {partition} must still hold offset {unread}, which {queue!r} reads next, begins at "
            f"{reach.first}: {reach.first - unread} rows are lost",
        )


class TopicMadeAnew(RecordsGone):
    """The topic ends before what was read of it: it was deleted and made again."""

    def __init__(self, queue: str, partition: str, unread: int, reach: Reach):
        super().__init__(
            partition,
            unread,
            reach,
            f"partition {partition} must reach offset {unread}, up to which {queue!r} has read, ends at "
            f"{reach.end}: its topic was made anew",
        )
