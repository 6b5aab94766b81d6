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
        until = self._records_before(offset)
        asked = self._java.java.util.HashMap()
        asked.put(where, until)
        admin.deleteRecords(asked).all().get()
        admin.close()

    def _records_before(self, offset: int) -> Any:
        """RecordsToDelete.beforeOffset, by reflection: a method of the same name hides it from the bridge."""
        gateway = self.session.sparkContext._gateway
        types = gateway.new_array(self._java.java.lang.Class, 1)
        types[0] = self._java.java.lang.Long.TYPE
        arguments = gateway.new_array(self._java.java.lang.Object, 1)
        arguments[0] = offset
        kind = self._java.java.lang.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete")
        return kind.getMethod("beforeOffset", types).invoke(None, arguments)

    def write(self, values: Iterable[str], partition: int | None = None) -> None:
        """Records with these values, acknowledged; without `partition` by turns to all there are."""
        admin = self._admin()
        asked = admin.describeTopics(self._java.java.util.Collections.singletonList(self.name))
        count = asked.allTopicNames().get().get(self.name).partitions().size()
        admin.close()
        records = [
            (value, number % count if partition is None else partition) for number, value in enumerate(values)
        ]
        frame = self.session.createDataFrame(records, "value STRING, partition INT").coalesce(1)
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", self.servers)
        writer.option("topic", self.name).save()

    def read(self) -> list[Any]:
        """Every record so far, as Spark's batch reader gives it."""
        reader = self.session.read.format("kafka").option("kafka.bootstrap.servers", self.servers)
        frame = reader.option("subscribe", self.name).option("includeHeaders", "true").load()
        return list(frame.collect())

    @property
    def values(self) -> list[str]:
        return sorted(bytes(row["value"]).decode() for row in self.read())
