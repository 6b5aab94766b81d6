"""Which feeder fills the queue of which source. A new source is a file with its feeder, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from penstock.ingest.http import HttpFeeder
from penstock.ingest.mqtt import MqttFeeder
from penstock.pipeline import sources
from penstock.queues.spool import Spool
from penstock.spark.feeders import Feeder

Clock = Callable[[], float]


class QueueFeeder(Protocol):
    """Brings rows into the queue of a source, from `start` to `stop`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        ...

    @property
    def done(self) -> bool:
        """Whether all rows that are to come, as far as can be known, are in the queue."""
        ...

    def start(self) -> None: ...

    def pause(self, paused: bool) -> None: ...

    def stop(self) -> None: ...


@runtime_checkable
class Connected(Protocol):
    """A feeder whose rows come from somebody who may go away and come back."""

    @property
    def connected(self) -> bool:
        """Whether that one is there now."""
        ...


FEEDERS: dict[type, Callable[[Any, Spool, Clock], QueueFeeder]] = {
    sources.Replay: Feeder,
    sources.Mqtt: MqttFeeder,
    sources.Http: HttpFeeder,
}


def has_feeder(spec: object) -> bool:
    """Whether rows of this source are brought into its queue by a feeder."""
    return type(spec) in FEEDERS


def feeder_for(spec: Any, spool: Spool, clock: Clock) -> QueueFeeder:
    """The feeder of a source as it was declared."""
    return FEEDERS[type(spec)](spec, spool, clock)
