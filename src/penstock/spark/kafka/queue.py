"""A topic between two stages of a pipeline, which has no spool then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.pipeline import sinks, sources
from penstock.queues.handover import Handover
from penstock.spark.ends import Written
from penstock.spark.kafka.end import KafkaEnd
from penstock.spark.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class TopicQueue:
    """The topic, and what both sides tell each other beside it."""

    topic: sinks.Kafka
    handover: Handover = field(default_factory=Handover)

    @property
    def source(self) -> sources.Kafka:
        """The same topic for those who read it."""
        return sources.Kafka(self.topic.servers, self.topic.topic or "", options=self.topic.options)

    def end(self, stage: str, session: SparkSession) -> KafkaEnd:
        """Where a stage writes."""
        return TopicQueueEnd(self, stage, session)


class TopicQueueEnd(KafkaEnd):
    """Writes what another stage of this engine waits for."""

    def __init__(self, queue: TopicQueue, stage: str, session: SparkSession):
        super().__init__(queue.topic, stage, session)
        self._handover = queue.handover

    def write(self, result: Result, batch: int) -> Written:
        came = result.dating.took.arrivals
        with self._handover.writing(came):
            written = super().write(result, batch)
            self._handover.written(came, written.rows)
        if self._watch is not None:
            self._watch.look_soon()
        return written
