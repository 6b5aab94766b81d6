"""Where rows can come from. Settings only: the runtime opens them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from penstock.pipeline.http_source import Http as Http
from penstock.pipeline.kafka import OnLost, Start, check_options, check_servers, check_topic
from penstock.pipeline.mqtt_source import Mqtt as Mqtt

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.queues.spool import Spool


@dataclass(frozen=True)
class Rate:
    """Spark's own generator: columns `timestamp` and `value`, `rows_per_second` of them, for ever."""

    rows_per_second: int
    native: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rows_per_second < 1:
            raise ValueError(
                f"rows per second must be 1 or more, got {self.rows_per_second}: no row would come"
            )


@dataclass(frozen=True)
class Files:
    """Files that appear in a directory, read by Spark's file source; `schema` is DDL, text needs none.

    Each file is read once, so that it must appear whole, by a rename, and under a name that no file had.
    """

    path: str | Path
    format: Literal["text", "json", "csv", "parquet", "orc"] = "text"
    schema: str = "value STRING"
    options: Mapping[str, str] = field(default_factory=dict)
    native: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class Replay:
    """A trace, played row by row at a given rate: every 100 ms one segment of a tenth of it.

    `trace` is an Arrow table or the path of a Parquet file, or of a text file (then each line is a row
    with the one column `value`). It loops unless told otherwise. Rows arrive when they are played;
    `stamp` names a column that gets that time, as a timestamp. `number` names a LONG column that counts
    the rows from 0, on over loops and restarts.
    """

    trace: pa.Table | str | Path
    rows_per_second: float
    loop: bool = True
    stamp: str | None = None
    tick_seconds: float = 0.1
    limit_bytes: int | None = None
    number: str | None = None
    native: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.rows_per_second <= 0:
            raise ValueError(
                f"rows per second must be positive, got {self.rows_per_second}: no row would come"
            )
        if self.tick_seconds <= 0:
            raise ValueError(f"tick must be positive, got {self.tick_seconds} s: time would stand still")
        if self.number is not None and self.number == self.stamp:
            raise ValueError(f"stamp and number must be two columns, got {self.number!r} twice: one would go")


@dataclass(frozen=True, eq=False)
class FromSpool:
    """Rows that the user's program appends to a spool it opened: `spool.append(table)`.

    `schema` is DDL; it must be that of the tables appended. A producer, `append(table, producer=)`, is a
    source of its own, and so is each name in `append_together(tables)`: windows wait for all that have been
    seen, unless they are silent for `idle_seconds`.
    `sources` is how many there are, so that none is missed at the start.
    """

    spool: Spool
    schema: str
    sources: int = 0
    idle_seconds: float = 10.0
    native: ClassVar[bool] = False


@dataclass(frozen=True)
class Kafka:
    """Records of Kafka topics, read by Spark's own connector in turns over exact ranges of offsets.

    Columns as Spark has them: `key` and `value` (BINARY), `topic`, `partition`, `offset`, `timestamp`,
    `timestampType`, and `headers` if asked for. `start` is where a pipeline without state begins.
    `on_lost` says what follows when records were deleted before they were read: the pipeline fails, or goes
    on with the `earliest` that are left, or with what comes from now on; rows lost are counted and told.
    `options` are for Kafka's clients (`kafka.security.protocol`); they are never shown.
    """

    servers: str
    topics: str | tuple[str, ...]
    start: Start = "earliest"
    on_lost: OnLost = "fail"
    headers: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    native: ClassVar[bool] = True
    by_turns: ClassVar[bool] = True
    """Spark reads it, in direct turns: there is no streaming query, and state stands behind a queue."""

    def __post_init__(self) -> None:
        check_servers(self.servers)
        if not self.names:
            raise ValueError("topics must be one or more, got none: no row would come")
        for topic in self.names:
            check_topic(topic)
        check_options(self.options)
        if self.start not in get_args(Start):
            raise ValueError(f"start must be 'earliest' or 'latest', got {self.start!r}: nothing was read")
        if self.on_lost not in get_args(OnLost):
            raise ValueError(
                f"on_lost must be 'fail', 'earliest' or 'latest', got {self.on_lost!r}: "
                "it is not known what is to follow when records are gone"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The topics, one or more."""
        return (self.topics,) if isinstance(self.topics, str) else tuple(self.topics)
