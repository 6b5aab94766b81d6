"""A topic of a real broker, as producers, consumers and administrators see it: by Kafka's own clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.spark.jvm import jvm

CLIENTS = "org.apache.kafka.clients"


class Topic:
    """Writes, reads and changes one topic."""

    def __init__(self, session: Any, servers: str, name: str):
        self.session = session
        self.servers = servers
        self.name = name
        self._java = jvm(session)

    def _map(self, settings: Mapping[str, Any]) -> Any:
        made = self._java.java.util.HashMap()
        for name, value in settings.items():
            made.put(name, value)
        return made

    def _admin(self) -> Any:
        return self._java.org.apache.kafka.clients.admin.AdminClient.create(
            self._map({"bootstrap.servers": self.servers})
        )

    def make(self, partitions: int, settings: Mapping[str, str] | None = None) -> None:
        admin = self._admin()
        made = self._java.org.apache.kafka.clients.admin.NewTopic(
            self.name, self._java.java.util.Optional.of(partitions), self._java.java.util.Optional.empty()
        ).configs(self._map({key.replace("_", "."): value for key, value in (settings or {}).items()}))
        admin.createTopics(self._java.java.util.Collections.singletonList(made)).all().get()
        admin.close()

    def delete(self) -> None:
        admin = self._admin()
        admin.deleteTopics(self._java.java.util.Collections.singletonList(self.name)).all().get()
        admin.close()

    def grow(self, partitions: int) -> None:
        admin = self._admin()
        more = self._java.org.apache.kafka.clients.admin.NewPartitions.increaseTo(partitions)
        admin.createPartitions(self._map({self.name: more})).all().get()
        admin.close()

    def delete_before(self, partition: int, offset: int) -> None:
        """What retention does, at once."""
        admin = self._admin()
        where = self._java.org.apache.kafka.common.TopicPartition(self.name, partition)
        until = self._java.org.apache.kafka.clients.admin.RecordsToDelete.beforeOffset(offset)
        asked = self._java.java.util.HashMap()
        asked.put(where, until)
        admin.deleteRecords(asked).all().get()
        admin.close()

    def write(self, values: Iterable[str], partition: int | None = None) -> None:
        """Records with these values, acknowledged; without `partition` to all of them in turn."""
        serializer = "org.apache.kafka.common.serialization.StringSerializer"
        settings = {"bootstrap.servers": self.servers, "linger.ms": "5"}
        settings |= {"key.serializer": serializer, "value.serializer": serializer}
        producer = self._java.org.apache.kafka.clients.producer.KafkaProducer(self._map(settings))
        record = self._java.org.apache.kafka.clients.producer.ProducerRecord
        count = len(producer.partitionsFor(self.name))
        for number, value in enumerate(values):
            where = number % count if partition is None else partition
            producer.send(record(self.name, where, None, value))
        producer.flush()
        producer.close()

    def read(self) -> list[Any]:
        """Every record so far, as Spark's batch reader gives it."""
        reader = self.session.read.format("kafka").option("kafka.bootstrap.servers", self.servers)
        frame = reader.option("subscribe", self.name).option("includeHeaders", "true").load()
        return list(frame.collect())

    @property
    def values(self) -> list[str]:
        return sorted(bytes(row["value"]).decode() for row in self.read())
