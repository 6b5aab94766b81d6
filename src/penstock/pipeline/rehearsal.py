"""A pipeline that is only tried out: its results go nowhere, and it has no targets."""

from __future__ import annotations

from dataclasses import replace

from penstock.pipeline.nodes import Sink
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.sinks import Callback


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
