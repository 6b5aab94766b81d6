"""The end in a Kafka topic, which may be away."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.errors import PenstockError
from penstock.pipeline.kafka import PREFIX
from penstock.pipeline.sinks import Kafka
from penstock.spark.ends import EndAway, Output, Written
from penstock.spark.kafka.connector import connector, java_map
from penstock.spark.kafka.watch import BrokerWatch, Look, topics_client, unwatch, watch
from penstock.spark.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock")

DEFAULTS = {
    # A producer that never gives up would keep its slot: rows wait better in their queue.
    "max.block.ms": "10000",
    "delivery.timeout.ms": "20000",
    "request.timeout.ms": "10000",
    "acks": "all",
}


class KafkaEnd:
    """Writes a turn's rows before it is committed: a turn that runs again writes them again."""

    shows: ClassVar[str | None] = None
    reads = False

    def __init__(self, spec: Kafka, stage: str, session: SparkSession):
        self._spec = spec
        self._stage = stage
        self._session = session
        self.topics: tuple[str, ...] = (spec.topic,) if spec.topic is not None else ()
        self._watch: BrokerWatch | None = None
        self._closed = False
        self._changed: Callable[[], None] = lambda: None
        self._there = False
        topics_client(session, spec.servers, spec.options)  # settings that cannot work are refused here

    @property
    def ready(self) -> bool:
        return self._there

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        if self._watch is None and not self._closed:
            self._watch = watch(self._session, self._spec.servers, self._spec.options, self)

    def told(self, look: Look) -> None:
        before, self._there = self._there, look.there
        if before != look.there:
            self._changed()

    def close(self) -> None:
        self._closed = True
        if self._watch is not None:
            unwatch(self._watch, self)
            self._watch = None

    def write(self, result: Result, batch: int) -> Written:
        writer = connector(self._session).TopicWriter
        answer = str(writer.write(result.frame._jdf, self._settings, self._spec.topic or ""))
        word, _, rest = answer.partition(" ")
        if word == "away":
            self._told_away(rest)
        return Written(int(rest))

    def _told_away(self, reason: str) -> None:
        """Rows wait while the cluster is away; if it is there, the topic is what is not."""
        look = self._watch.look(self.topics) if self._watch is not None else Look(away=reason)
        if look.there and self.topics and not look.reaches:
            raise PenstockError(
                f"topic {self._spec.topic!r} must be there for stage {self._stage!r} to write to, is not: "
                f"Kafka at {self._spec.servers} does not make it by itself; make it, and resume the pipeline"
            )
        self._there = look.there
        if look.there:
            log.warning(
                "stage %r could not write to Kafka (%s): its rows are tried again", self._stage, reason
            )
        raise EndAway(f"Kafka at {self._spec.servers} could not be written to: {reason}")

    @cached_property
    def _settings(self) -> Any:
        given = {name.lower(): str(value) for name, value in self._spec.options.items()}
        usual = {f"{PREFIX}{name}": value for name, value in DEFAULTS.items()}
        servers = {f"{PREFIX}bootstrap.servers": self._spec.servers}
        return java_map(self._session, {**usual, **given, **servers})

    def show(self, output: Output) -> None:
        raise PenstockError("a topic keeps nothing to be shown later")
