"""Queries written in plain PySpark, under the scheduler as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.errors import PenstockError
from penstock.pipeline import sinks
from penstock.pipeline.endpoints import SinkSpec
from penstock.pipeline.latency import Duration
from penstock.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class AdoptedQuery:
    """A streaming DataFrame as a source: its operators are Spark's plan already."""

    frame: DataFrame
    output_mode: str = "append"
    native: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.frame.isStreaming:
            raise PenstockError(
                "a query must be a streaming DataFrame, got a static one: there is nothing to schedule; "
                "read it with spark.readStream"
            )


def adopted_pipeline(
    name: str,
    query: AdoptedQuery,
    sink: SinkSpec | Callable[[DataFrame, int], None],
    latency: Duration | None,
    slots: int,
) -> Pipeline:
    """A pipeline of one stage: the query, then the sink."""
    pipeline = Pipeline(name)
    spec = sinks.ForeachBatch(sink) if callable(sink) else sink
    stream = pipeline.source("source", query)
    if slots > 1:
        stream = stream.operator("wide", lambda frame: frame, parallelism=slots)
    stream.sink("sink", spec, latency=latency)
    return pipeline
