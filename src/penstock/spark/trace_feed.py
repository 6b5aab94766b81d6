"""The traces of pipelines that are tried out, in segments of whatever size is asked for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.pipeline.nodes import Source
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.sources import FromSpool, Replay
from penstock.queues.spool import Spool
from penstock.spark.feeders import Trace
from penstock.spark.sized_turns import ENOUGH_TURNS

SEGMENTS = ENOUGH_TURNS + 2


class TraceFeed:
    """Takes the place of all `Replay` sources: their rows come when they are asked for, for ever.

    with TraceFeed(pipelines, folder) as feed, Engine(...) as engine:
        ...  # submit the pipelines
        feed(100)  # some segments of 100 rows
    """

    def __init__(self, pipelines: Iterable[Pipeline], folder: Path):
        self._fed: list[tuple[Spool, Trace]] = []
        self._rows: Counter[Path] = Counter()
        for pipeline in pipelines:
            for node in tuple(pipeline.nodes.values()):
                if isinstance(node, Source):
                    self._feed_instead(pipeline, node, folder)

    def _feed_instead(self, pipeline: Pipeline, node: Source, folder: Path) -> None:
        if not isinstance(node.spec, Replay):
            raise PenstockError(
                f"source {node.name!r} of pipeline {pipeline.name!r} must be a Replay to be profiled, got "
                f"{type(node.spec).__name__}: replay a sample of what it gives"
            )
        trace = Trace(replace(node.spec, loop=True))
        spool = Spool(folder / pipeline.name / node.name)
        self._fed.append((spool, trace))
        pipeline.exchange(replace(node, spec=FromSpool(spool, _ddl(trace.schema))))

    def __call__(self, size: int) -> None:
        """Appends some segments of so many rows to each source."""
        for spool, trace in self._fed:
            for _ in range(SEGMENTS):
                rows = trace.rows(self._rows[spool.path], self._rows[spool.path] + size)
                spool.append(trace.stamped(rows, time.time()))
                self._rows[spool.path] += size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for spool, _ in self._fed:
            spool.close()


def _ddl(schema: pa.Schema) -> str:
    from pyspark.sql.pandas.types import from_arrow_schema

    fields = from_arrow_schema(schema).fields
    return ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in fields)
