"""The queues of a pipeline that runs: opened, filled, listened to, and left."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from penstock.pipeline.sinks import JsonLines, Parquet, ToSpool
from penstock.pipeline.sources import FromSpool, Replay
from penstock.queues.cursor import Consumer
from penstock.queues.errors import SpoolClosed
from penstock.queues.position import Position
from penstock.queues.spool import Spool
from penstock.scheduling.progress import IDLE_SECONDS, SourcesRule
from penstock.spark.compile import Compiler
from penstock.spark.feeder_catalog import Connected, QueueFeeder, feeder_for, has_feeder
from penstock.spark.jvm import schema_from_ddl
from penstock.spark.kafka.queue import TopicQueue
from penstock.spark.surroundings import Surroundings
from penstock.stages.stage import Queue, StageGraph


def folders_outside(graph: StageGraph, state: Path) -> Iterator[tuple[Path, str]]:
    """Where rows of a pipeline lie that is not the state directory, and what it is."""
    for queue in graph.queues.values():
        spec: Any = queue.source.spec if queue.source is not None else None
        if isinstance(spec, FromSpool) and not _in(spec.spool.path, state):
            yield spec.spool.path, f"the spool of source {queue.source.name!r}"  # type: ignore[union-attr]
    for stage in graph.stages:
        if stage.sink is None:
            continue
        end: Any = stage.sink.spec
        if isinstance(end, ToSpool | Parquet | JsonLines):
            path = end.spool.path if isinstance(end, ToSpool) else Path(end.path)
            if not _in(path, state):
                yield path, f"the folder of sink {stage.sink.name!r}"


def _in(path: Path, state: Path) -> bool:
    return path.absolute().is_relative_to(state.absolute())


class OpenQueues:
    """Spools by the names of their queues, and the feeders that fill them; `own` lie under `folder`."""

    def __init__(self, graph: StageGraph, folder: Path, around: Surroundings):
        self._graph, self._folder, self._around = graph, folder, around
        self.spools: dict[str, Spool] = {}
        self.own: list[Spool] = []
        self._fed: dict[str, QueueFeeder] = {}
        self._listeners: list[tuple[Spool, Callable[[], None]]] = []
        self._readers: dict[tuple[Path, str], Spool] = {}
        """Of the user's spools, also those that were left since and may come back."""

    def open(self, compiler: Compiler) -> None:
        """Opens all of them, and tells the compiler what it has to know of each."""
        for queue in self._graph.queues.values():
            if queue.topic is not None:
                compiler.topics[queue.name] = TopicQueue(queue.topic)
            else:
                compiler.sources[queue.name] = self._sources_of(queue)
                self._open(queue, compiler)

    def _open(self, queue: Queue, compiler: Compiler) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        spec: Any = queue.source.spec if queue.source is not None else None
        if isinstance(spec, FromSpool):
            self.spools[queue.name] = spec.spool
            compiler.schemas[queue.name] = schema_from_ddl(spec.schema)
            return
        # A loop has no limit: the stage that must empty its queue is the one that would wait for room.
        limit = self._around.queue_limit_bytes if queue.loop_schema is None else None
        if has_feeder(spec):
            limit = spec.limit_bytes if isinstance(spec, Replay) else spec.limit_bytes or limit
        folder = self._folder / queue.name.split(".", 1)[1]
        spool = Spool(folder, name=queue.name, limit_bytes=limit, fsync=self._around.fsync)
        self.spools[queue.name] = spool
        self.own.append(spool)
        if has_feeder(spec):
            feeder = feeder_for(spec, spool, self._around.dispatcher.clock)
            compiler.schemas[queue.name] = from_arrow_schema(feeder.schema)
            self._fed[queue.name] = feeder
        elif queue.loop_schema is not None:
            compiler.schemas[queue.name] = schema_from_ddl(queue.loop_schema)

    def _sources_of(self, queue: Queue) -> SourcesRule:
        """How many producers a queue has at least, and how long one of this pipeline may be silent."""
        specs = [each.source.spec for each in self._graph.queues.values() if each.source is not None]
        idle = max((spec.idle_seconds for spec in specs if isinstance(spec, FromSpool)), default=IDLE_SECONDS)
        if queue.loop_schema is not None:
            return SourcesRule(0, idle)
        spec = queue.source.spec if queue.source is not None else None
        expected = spec.sources if isinstance(spec, FromSpool) else len(queue.producers)
        return SourcesRule(max(expected, 1), idle)

    def listen(self, spool: Spool, listener: Callable[[], None], *, to_room: bool = False) -> None:
        """Calls `listener` when rows came to a spool, or when they left it, until it is closed."""
        spool.add_listener(listener, to_room=to_room)
        self._listeners.append((spool, listener))

    @property
    def feeders(self) -> list[QueueFeeder]:
        """Those that fill queues now."""
        return list(self._fed.values())

    @property
    def away(self) -> frozenset[str]:
        """The queues whose source is not there now, as far as its feeder knows."""
        fed = tuple(self._fed.items())
        return frozenset(name for name, each in fed if isinstance(each, Connected) and not each.connected)

    def end_feeders(self) -> None:
        for feeder in self.feeders:
            feeder.stop()

    def subscribe(self, queue: str, stage: str, position: Position) -> Consumer:
        """A stage's reader of a queue, until all of them are closed."""
        spool = self.spools[queue]
        reader = spool.subscribe(stage, position)
        if spool not in self.own:
            self._readers[spool.path, stage] = spool
        return reader

    def close(self, forget: bool = False) -> None:
        """A spool of the user's stays open, and keeps what a stage has not read, unless to `forget` it."""
        for (_, stage), spool in self._readers.items():
            with contextlib.suppress(SpoolClosed):
                if forget:
                    spool.unsubscribe(stage)
                else:
                    spool.detach(stage)
        for spool, listener in self._listeners:
            spool.remove_listener(listener)
        for spool in self.own:
            spool.close()
        self.own, self._fed, self._listeners = [], {}, []
        self.spools.clear()
