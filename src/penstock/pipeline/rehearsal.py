"""A pipeline that is only tried out: more rows than it can hold, results that go nowhere, no targets."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import PenstockError
from penstock.pipeline.nodes import Sink, Source
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.sinks import Callback
from penstock.pipeline.sources import Replay

ROWS_PER_SECOND = 100_000.0
LIMIT_BYTES = 32_000_000


def flood(pipeline: Pipeline) -> None:
    """Lets the pipeline's sources give rows as fast as they are taken."""
    for node in tuple(pipeline.nodes.values()):
        if not isinstance(node, Source):
            continue
        if not isinstance(node.spec, Replay):
            raise PenstockError(
                f"source {node.name!r} of pipeline {pipeline.name!r} must be a Replay to be profiled, got "
                f"{type(node.spec).__name__}: replay a sample of what it gives"
            )
        spec = replace(node.spec, rows_per_second=ROWS_PER_SECOND, limit_bytes=LIMIT_BYTES, loop=True)
        pipeline.exchange(replace(node, spec=spec))


def let_go(pipeline: Pipeline) -> None:
    """Lets the pipeline's sinks drop their rows: what is tried out must not stand among real results."""
    for node in tuple(pipeline.nodes.values()):
        if isinstance(node, Sink):
            pipeline.exchange(replace(node, spec=Callback(lambda table, batch: None)))


def let_wait(pipeline: Pipeline) -> None:
    """Takes the targets off: nobody is to hear that they are not met."""
    for node in tuple(pipeline.nodes.values()):
        if isinstance(node, Sink):
            pipeline.exchange(replace(node, latency_seconds=None))
