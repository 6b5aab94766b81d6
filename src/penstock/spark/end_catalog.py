"""Which end writes to which sink. A new sink is a file with its end, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.pipeline import sinks
from penstock.pipeline.endpoints import SinkSpec
from penstock.queues.disk import Disk
from penstock.spark.ends import CallEnd, End, FolderEnd, FrameEnd, QueueEnd
from penstock.spark.kafka.end import KafkaEnd
from penstock.spark.message_end import MessageEnd
from penstock.spark.rabbitmq_publisher import rabbit_link
from penstock.spark.table_end import TableEnd


@dataclass(frozen=True)
class Writer:
    """The stage that an end writes for: its name, a folder for what is not shown yet, and its session."""

    stage: str
    folder: Path
    disk: Disk
    session: Any = None


ENDS: dict[type, Callable[[Any, Writer], End]] = {
    sinks.Parquet: lambda spec, by: FolderEnd(Path(spec.path).absolute(), by.stage, "parquet", by.disk),
    sinks.JsonLines: lambda spec, by: FolderEnd(Path(spec.path).absolute(), by.stage, "json", by.disk),
    sinks.ToSpool: lambda spec, by: QueueEnd(spec.spool, by.stage),
    sinks.Callback: lambda spec, by: CallEnd(spec, by.stage),
    sinks.Console: lambda spec, by: CallEnd(spec, by.stage),
    sinks.ForeachBatch: lambda spec, by: FrameEnd(spec, by.stage),
    sinks.Kafka: lambda spec, by: KafkaEnd(spec, by.stage, by.session),
    sinks.Mqtt: lambda spec, by: MessageEnd(spec, by.stage),
    sinks.RabbitMq: lambda spec, by: MessageEnd(spec, by.stage, rabbit_link()),
    sinks.Table: lambda spec, by: TableEnd(spec, by.stage, by.folder, by.disk),
}


def end_for(spec: SinkSpec, by: Writer) -> End:
    """The end that writes to a sink as it was declared."""
    for kind, make in ENDS.items():
        if isinstance(spec, kind):
            return make(spec, by)
    raise PenstockError(
        f"a sink must be one of penstock.sinks, got {type(spec).__name__}: the runtime cannot write to it"
    )
