"""Where rows can go. Settings only: the runtime writes. Each says how often a row arrives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from penstock.pipeline.kafka import check_options, check_servers, check_topic
from penstock.pipeline.rabbitmq_sink import RabbitMq as RabbitMq

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.queues.spool import Spool
    from penstock.secret import Secret, Tls


@dataclass(frozen=True)
class Parquet:
    """A directory of Parquet files, named by turn: a turn that runs again replaces its own."""

    path: str | Path
    guarantee: ClassVar[str] = "exactly once"


@dataclass(frozen=True)
class JsonLines:
    """A directory of JSON-lines files, named by turn: a turn that runs again replaces its own."""

    path: str | Path
    guarantee: ClassVar[str] = "exactly once"


@dataclass(frozen=True, eq=False)
class ToSpool:
    """A spool that the user's program opened, to be read by it or by another pipeline."""

    spool: Spool
    guarantee: ClassVar[str] = "exactly once"


@dataclass(frozen=True)
class Table:
    """A table of an SQLite database, made where it is missing; each turn's rows in one transaction.

    Numbers, text, truth values and bytes are stored as they are, dates and times as ISO 8601 text, and
    decimals of more than 15 digits as text (in a table that Penstock made).
    """

    path: str | Path
    table: str
    batch_rows: int = 100
    guarantee: ClassVar[str] = "exactly once"

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise ValueError(f"batch rows must be 1 or more, got {self.batch_rows}: no row could be inserted")
        if not self.table or self.table.lower().startswith(("sqlite_", "penstock_")):
            raise ValueError(
                f"a table must have a name that begins neither with 'sqlite_' nor with 'penstock_', "
                f"got {self.table!r}: those are taken"
            )


@dataclass(frozen=True)
class Mqtt:
    """Messages to an MQTT broker: the column `payload` of each row, in no set order.

    A turn is committed once the broker has acknowledged all its messages. While the broker is away
    rows wait in the queue before the sink, and nothing else does.
    """

    host: str
    port: int = 1883
    topic: str = "penstock"
    payload: str = "payload"
    qos: int = 1
    client_id: str | None = None
    keepalive_seconds: int = 20
    username: str | None = None
    password: Secret | None = None
    tls: Tls | None = None
    broker: ClassVar[str] = "MQTT broker"
    guarantee: ClassVar[str] = "at least once"
    may_be_away: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.qos not in (1, 2):
            raise ValueError(f"qos must be 1 or 2, got {self.qos}: messages could be lost unnoticed")
        if not self.topic or set("+#") & set(self.topic):
            raise ValueError(
                f"a topic to publish to must be a name without '+' and '#', got {self.topic!r}: "
                "a broker would refuse it"
            )
        if self.keepalive_seconds < 1:
            raise ValueError(
                f"keepalive must be 1 s or more, got {self.keepalive_seconds} s: "
                "a broker that is gone would not be noticed"
            )
        if self.password is not None and self.username is None:
            raise ValueError("a password must come with a username, got none: a broker would refuse it")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows must have."""
        return (self.payload,)


@dataclass(frozen=True)
class Console:
    """The first `rows` rows of each turn, printed."""

    rows: int = 20
    guarantee: ClassVar[str] = "at least once"


@dataclass(frozen=True)
class Callback:
    """A function that gets each turn's rows as an Arrow table, and the turn's number.

    With `may_be_away` stages are cut as before a broker's sink: a queue stands between it and state.
    """

    function: Callable[[pa.Table, int], None]
    may_be_away: bool = False
    guarantee: ClassVar[str] = "at least once"


@dataclass(frozen=True)
class ForeachBatch:
    """A function as Spark's foreachBatch takes it: a DataFrame and the batch's number.

    It must run one action over all rows: that is what commits a stateful query.
    """

    function: Callable[[DataFrame, int], None]
    guarantee: ClassVar[str] = "at least once"


@dataclass(frozen=True)
class Kafka:
    """Records to Kafka: the column `value` of each row, and `key`, `headers` and `partition` if it has them.

    Columns as Spark's own writer takes them; without `topic` here, rows have a column `topic`. A turn is
    committed once the broker has acknowledged all its records. While the broker is away rows wait in the
    queue before the sink, and nothing else does. `options` are for Kafka's producer; they are never shown.
    """

    servers: str
    topic: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    guarantee: ClassVar[str] = "at least once"
    may_be_away: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_servers(self.servers)
        if self.topic is not None:
            check_topic(self.topic)
        check_options(self.options)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows must have."""
        return ("value",) if self.topic is not None else ("value", "topic")

    @property
    def kinds(self) -> Mapping[str, tuple[str, ...]]:
        """The types that its columns may have, as Spark calls them."""
        text = ("string", "binary")
        return {"key": text, "value": text, "topic": ("string",), "partition": ("int",)}
