"""What a broker's session is known by, kept with the queue that it feeds."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.pipeline.mqtt_source import Mqtt
from penstock.queues.disk import Disk


@dataclass(frozen=True)
class KeptSession:
    """The client's name, which two runs must not share, and topics that the session is still subscribed to.

    The broker goes on sending what was subscribed once: a topic that the settings name no more is
    unsubscribed at the next connection.
    """

    path: Path
    client_id: str
    topic: str
    stale_topics: tuple[str, ...] = ()
    was_there: bool = False
    """Whether the broker has had it: if it then says that it is new, messages were lost."""

    @classmethod
    def of(cls, spec: Mqtt, path: Path) -> KeptSession:
        """The one that was kept, or a new one; it is written before the broker can know of it."""
        kept = json.loads(path.read_text()) if path.exists() else {}
        client_id = spec.client_id or kept.get("client_id") or f"penstock-{uuid.uuid4().hex[:16]}"
        known = kept.get("topics", []) if client_id == kept.get("client_id") else []
        stale = tuple(topic for topic in known if topic != spec.topic)
        was_there = bool(known) and bool(kept.get("was_there"))
        session = cls(path, client_id, spec.topic, stale, was_there)
        session._write()
        return session

    def settled(self) -> KeptSession:
        """After a connection: the session has this topic alone."""
        if self.was_there and not self.stale_topics:
            return self
        session = replace(self, stale_topics=(), was_there=True)
        session._write()
        return session

    def _write(self) -> None:
        topics = [*self.stale_topics, self.topic]
        kept = {"client_id": self.client_id, "topics": topics, "was_there": self.was_there}
        Disk().replace(self.path, json.dumps(kept).encode())
