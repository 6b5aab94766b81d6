"""The end at a broker of messages, which may be away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import PenstockError
from penstock.pipeline.sinks import Mqtt, RabbitMq
from penstock.spark.ends import EndAway, Output, Written
from penstock.spark.mqtt_publisher import BrokerAway, Link, Publisher
from penstock.spark.results import Result


class MessageEnd:
    """Publishes a turn's rows before it is committed: a turn that runs again publishes them again."""

    shows: ClassVar[str | None] = None

    def __init__(self, spec: Mqtt | RabbitMq, stage: str, link: Callable[[Any, str], Link] | None = None):
        self._spec = spec
        self._publisher = Publisher(spec, stage, link=link)

    @property
    def ready(self) -> bool:
        return self._publisher.connected

    def watch(self, changed: Callable[[], None]) -> None:
        self._publisher.changed = changed
        self._publisher.start()

    def close(self) -> None:
        self._publisher.close()

    def write(self, result: Result, batch: int) -> Written:
        table = result.table()
        try:
            self._publisher.publish(self._payloads(table))
        except BrokerAway as away:
            raise EndAway(str(away)) from away
        return Written(table.num_rows)

    def _payloads(self, table: pa.Table) -> list[str | bytes | None]:
        column = table[self._spec.payload]
        kind = column.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)):
            column = pc.cast(column, pa.string())
        return column.to_pylist()  # type: ignore[no-any-return]

    def show(self, output: Output) -> None:
        raise PenstockError("a broker keeps nothing to be shown later")
