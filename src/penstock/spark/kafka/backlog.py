"""The backlog of a streaming query that reads Kafka: what the broker has, less what the query has read."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.pipeline.kafka import PREFIX
from penstock.queues.segment import Arrivals
from penstock.scheduling.contexts import Frontier
from penstock.scheduling.line import WindowSpan
from penstock.spark.backlogs import Waiting
from penstock.spark.kafka.watch import ANEW_SECONDS, LOOK_SECONDS, look_at, topics_client
from penstock.spark.query import AfterBatch, HeldQuery
from penstock.spark.turn_input import Portion, TurnInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVERS = f"{PREFIX}bootstrap.servers"


class KafkaBacklog:
    """Kafka as a query of the user's own reads it, by `subscribe`. Rows are counted by offsets."""

    listens = False

    def __init__(self, client: Any, topics: tuple[str, ...], checkpoint: Path):
        self._client = client
        self._topics = topics
        self._offsets = checkpoint / "offsets"
        self._ends: Mapping[str, int] = {}
        self._read: dict[str, int] | None = None
        self._since = 0.0
        self._anew_at = 0.0

    @classmethod
    def of(cls, session: SparkSession, options: Mapping[str, str], checkpoint: Path) -> KafkaBacklog | None:
        """None where the topics are not named: only Spark knows then which they are."""
        named = {name.lower(): value for name, value in options.items()}
        if "subscribe" not in named or SERVERS not in named:
            return None
        clients = {name: value for name, value in named.items() if name.startswith(PREFIX)}
        client = topics_client(session, clients.pop(SERVERS), clients)
        topics = tuple(each.strip() for each in named["subscribe"].split(","))
        return cls(client, topics, checkpoint)

    def waiting(self, now: float) -> Waiting:
        if self._read is None:
            return Waiting(0, now)
        rows = sum(max(end - self._read.get(name, 0), 0) for name, end in self._ends.items())
        return Waiting(rows, self._since or now)

    def look(self) -> None:
        """Asks the broker, which may take a while where that is away: then nothing more waits."""
        began = time.monotonic()
        anew = began >= self._anew_at
        look = look_at(self._client, self._topics, anew=anew)
        if not look.there or self._read is None:
            return
        if anew:
            self._anew_at = began + ANEW_SECONDS
        self._ends = {name: reach.end for name, reach in look.reaches.items()}
        for name, reach in look.reaches.items():
            self._read.setdefault(name, reach.first)
        self._since = self._since or time.time()

    def look_again_at(self, now: float) -> float | None:
        self._since = 0.0
        return now + LOOK_SECONDS

    def before(self, query: HeldQuery, now: float) -> float | None:
        return None

    def after(self, query: HeldQuery, batch: AfterBatch, now: float) -> TurnInput:
        """The offsets that Spark has written down for the batch; rows count from when they were seen."""
        came, self._since = self._since or now, 0.0
        self._read = self._written()
        return TurnInput((Portion(batch.rows_read, Arrivals.at(came, batch.rows_read), came),))

    def _written(self) -> dict[str, int]:
        newest = max((int(path.name) for path in self._offsets.glob("[0-9]*")), default=None)
        if newest is None:
            return {}
        lines = (self._offsets / str(newest)).read_text().splitlines()
        topics = json.loads(lines[-1])
        return {f"{topic}/{number}": end for topic, ends in topics.items() for number, end in ends.items()}

    def nothing_came(self) -> None:
        """Offsets that hold no record, as transactions leave them, are not asked for again."""
        if self._read is not None:
            self._read.update(self._ends)

    def frontier(self, span: WindowSpan, now: float) -> Frontier | None:
        """What is in the records is not known."""
        return None
